/** The audit record as lines: what a job or an automation does again and again is one line. */

export interface AuditRecord {
  time: number;
  action: string;
  by: string;
  detail?: object;
}

const MACHINE = /^(task|job|run|automation|host)\b/;

/** Records in their order; those of a machine that differ only in the session are counted in the first of them. */
export function auditLines(records: AuditRecord[]): (AuditRecord & { times: number })[] {
  const lines: (AuditRecord & { times: number; key: string })[] = [];
  for (const record of records) {
    const machine = MACHINE.exec(record.by)?.[0];
    const { session: _, ...detail } = (record.detail ?? {}) as Record<string, unknown>;
    const key = machine ? JSON.stringify([record.action, machine, detail]) : "";
    const last = lines.at(-1);
    if (key && last?.key === key) last.times++;
    else lines.push({ ...record, times: 1, key });
  }
  return lines.map(({ key: _, ...line }) => line);
}
