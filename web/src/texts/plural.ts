/** A count with its noun: "1 step", "3 steps". The plural is given where it is not the noun with an s. */
export const plural = (count: number, one: string, many = `${one}s`): string => `${count} ${count === 1 ? one : many}`;
