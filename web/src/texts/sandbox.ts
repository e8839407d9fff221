/** Texts of the choice of a sandbox. */

export const SANDBOX = {
  name: "Sandbox",
  option: (id: string, name: string) => (id === "off" ? name : `Sandbox: ${name.toLowerCase()}`),
  remembered: "The choice is remembered for this folder.",
  current: (name: string) => `${name} (now)`,
} as const;
