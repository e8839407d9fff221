/** A host for one file of tests, and the people who visit it; they leave after every test. */

import { afterAll, afterEach, beforeAll } from "vitest";
import type { RealHost } from "./host";
import { type Look, Person } from "./person";

/** Gives a way to let somebody come in, logged in by the link the host prints. */
export function visitors(host: RealHost, ...options: string[]): (look?: Look) => Promise<Person> {
  let people: Person[] = [];
  beforeAll(() => host.start(...options));
  afterAll(() => host.close());
  afterEach(async () => {
    await Promise.all(people.map((person) => person.leave()));
    people = [];
  });
  return async (look) => {
    const person = await Person.arrive(look);
    people.push(person);
    await person.logIn(host);
    return person;
  };
}
