/** An amount of data: 512 B, 3.2 MB. */
export function bytes(amount: number): string {
  for (const unit of ["B", "kB", "MB"]) {
    if (amount < 999.5) return unit === "B" ? `${amount} B` : `${amount.toFixed(1)} ${unit}`;
    amount /= 1000;
  }
  return `${amount.toFixed(1)} GB`;
}
