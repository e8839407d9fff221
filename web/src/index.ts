import { SessionView } from "./session";
import { SetupView } from "./setup";
import { SESSION_LIST } from "./texts/portal";

const setup = new SetupView((sessionId) => {
  // The address names the session, so a reload (or a copied address) returns to it.
  const query = new URLSearchParams(window.location.search);
  query.delete("gone");
  query.set("session", sessionId);
  window.history.replaceState(null, "", `${window.location.pathname}?${query}`);
  open(sessionId);
});

function open(sessionId: string): void {
  setup.hide();
  new SessionView(sessionId, () => {
    window.location.replace(`${window.location.pathname}?gone=1`);
  });
}

const query = new URLSearchParams(window.location.search);
const sessionId = query.get("session");
if (sessionId) {
  open(sessionId);
} else {
  setup.show();
  if (query.has("gone")) setup.report(SESSION_LIST.thatSessionIsClosed);
}
