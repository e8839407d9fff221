/**
 * Where the host's addresses begin, as seen from this page: a proxy may offer all of it below a base path. The pages are
 * at the root, so relative names will do; the workbench has its own addresses below `/app` and uses the part before it.
 */

const inApp = /^(.*?)\/app(?:\/|$)/.exec(window.location.pathname);

export const root = inApp ? (inApp[1] ?? "") : ".";
