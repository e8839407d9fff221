/** Nothing that cannot be undone happens in one click. */

import { make, makeButton } from "../page";
import { dialog } from "../shortcuts";

export function confirm(title: string, text: string, action: string, run: () => void): void {
  const box = dialog(title);
  box.addEventListener("close", () => box.remove());
  const foot = make("div", "answers");
  foot.append(
    makeButton("danger", action, () => {
      box.close();
      run();
    }),
  );
  box.append(make("p", "", text), foot);
  box.showModal();
}
