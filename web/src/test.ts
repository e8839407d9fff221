import { api, explain } from "./api";

api.test().then(
  ({ message }) => (document.body.textContent = message ?? ""),
  (error: unknown) => (document.body.textContent = explain(error)),
);
