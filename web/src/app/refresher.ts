/** Asks again after something has changed, one question at a time: an older answer never comes after a newer one. */
export class Refresher {
  private asking = false;
  private again = false;
  private stopped = false;

  /** What `ask` rejects with is a question that failed: it is asked once more, for there may be no further change. */
  constructor(
    private readonly ask: () => Promise<void>,
    private readonly settleMs = 50,
    private readonly retryMs = 1000,
  ) {}

  changed(): void {
    this.again = true;
    this.next(this.settleMs);
  }

  stop(): void {
    this.stopped = true;
  }

  private next(wait: number): void {
    if (this.asking || !this.again || this.stopped) return;
    this.asking = true;
    setTimeout(() => void this.run(), wait);
  }

  private async run(): Promise<void> {
    let wait = this.settleMs;
    this.again = false;
    try {
      if (!this.stopped) await this.ask();
    } catch {
      this.again = true;
      wait = this.retryMs;
    }
    this.asking = false;
    this.next(wait);
  }
}
