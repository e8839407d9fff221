/** As much of it as the tests use; the package has no types of its own. */
declare module "oidc-provider" {
  import type { RequestListener } from "node:http";

  export default class Provider {
    constructor(issuer: string, configuration: { findAccount: (context: unknown, sub: string) => object; [name: string]: unknown });
    callback(): RequestListener;
  }
}
