/** The way in: the form itself needs no script, this only adds the error and the page to come back to. */

import { byId } from "./page";

const query = new URLSearchParams(window.location.search);
byId("login-error").hidden = !query.has("error");

const next = query.get("next") ?? "";
// Only a path of this host: anything else would send a fresh login to a stranger's page.
if (/^\/(?![/\\])/.test(next)) byId("login-next", HTMLInputElement).value = next;
