import { api, explain } from "./api";

api.test().then(
  ({ message }) => (document.body.textContent = message ?? ""),
  (error: unknown) => (document.body.textContent = explain(error)),
);

// The portal's body is the host's message and nothing else, so the link is next to it.
const nav = document.createElement("nav");
const link = document.createElement("a");
link.href = "./app";
link.textContent = "Open the workbench";
nav.append(link);
document.documentElement.append(nav);
