/** Login: the form itself needs no script. This adds the error, the page to return to, and the login by a provider. */

import { byId } from "./page";
import { LOGIN } from "./texts/host";

const query = new URLSearchParams(window.location.search);
byId("login-error").hidden = !query.has("error");

// The host did not log in by this link, because another site opened it: the person decides.
const token = query.get("tkn");
if (token) {
  byId("login-token", HTMLInputElement).value = token;
  byId("login-link").hidden = false;
  window.history.replaceState(null, "", "./login");
}

const next = query.get("next") ?? "";
// Only a path of this host: anything else would send a fresh login to a stranger's page.
if (/^\/(?![/\\])/.test(next)) byId("login-next", HTMLInputElement).value = next;

/** A host with an OpenID provider offers it first; the form stays, for tokens. */
async function offerProvider(): Promise<void> {
  const response = await fetch("./login/ways");
  const { oidc, problem } = (await response.json()) as { oidc: string | null; problem?: string };
  if (!oidc) return;
  if (problem) {
    byId("login-provider").textContent = problem;
    byId("login-provider").hidden = false;
    return;
  }
  const link = byId("login-oidc", HTMLAnchorElement);
  link.textContent = LOGIN.sign(oidc);
  const wanted = byId("login-next", HTMLInputElement).value;
  link.href = `./login/oidc?${new URLSearchParams({ next: wanted })}`;
  byId("login-provider").hidden = false;
}

void offerProvider().catch(() => undefined); // the form works without
