/** The audit record: what a job does many times is one line, and what a person does is always its own line. */

import { expect, test } from "vitest";
import { type AuditRecord, auditLines } from "../src/app/auditLines";
import { whose } from "../src/app/people";
import type { Row } from "../src/app/entries";

const record = (action: string, by: string, detail: object = {}): AuditRecord => ({ time: 1, action, by, detail });

test.each<[string, AuditRecord[], [action: string, times: number][]]>([
  ["a job that loosens 24 sessions", Array.from({ length: 24 }, (_, index) => record("approval.loosened", `task:t${index}`, { session: `s${index}`, change: "config.approvals = 'allow'" })), [["approval.loosened", 24]]],
  ["a person who revokes twice", [record("token.revoked", "token:owner", { name: "a" }), record("token.revoked", "token:owner", { name: "a" })], [["token.revoked", 1], ["token.revoked", 1]]],
  ["a job with other details", [record("x", "task:1", { change: "a" }), record("x", "task:2", { change: "b" })], [["x", 1], ["x", 1]]],
  ["a person in between", [record("x", "task:1"), record("y", "token:owner"), record("x", "task:2")], [["x", 1], ["y", 1], ["x", 1]]],
  ["nothing", [], []],
])("%s", (_, records, lines) => expect(auditLines(records).map(({ action, times }) => [action, times])).toEqual(lines));

test.each<[Partial<Row["session"]>, string]>([
  [{ by: "token:owner" }, "owner"],
  [{ by: "task:task-1" }, ""],
  [{ by: "run:run-1" }, ""],
  [{ by: "task:task-1", owner: "ann" }, "ann"],
])("the session of %j is one of %j", (session, name) => expect(whose(session as Row["session"])).toContain(name));
