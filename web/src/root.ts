/**
 * Where the host's addresses begin, as seen from this page: a proxy may offer all of it below a base path. The pages stand
 * at the root, so relative names will do; the workbench has addresses of its own below `/app` and looks what is before.
 */

const inApp = /^(.*?)\/app(?:\/|$)/.exec(window.location.pathname);

export const root = inApp ? (inApp[1] ?? "") : ".";
