/** Where measured numbers go: to the console, and to the file that `MEASURED` names. */

import { appendFileSync } from "node:fs";

export function tell(name: string, numbers: Record<string, number>): void {
  console.log(name, numbers);
  if (process.env["MEASURED"]) appendFileSync(process.env["MEASURED"], `${JSON.stringify({ name, ...numbers })}\n`);
}
