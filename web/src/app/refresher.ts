/** Asks again after something has changed, one question at a time: an older answer never comes after a newer one. */
export class Refresher {
  private asking = false;
  private again = false;
  private stopped = false;

  /** `ask` returns whether the host answered. If not, it is retried, because no further change may follow. */
  constructor(
    private readonly ask: () => Promise<boolean>,
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
    this.again = false;
    let answered = true;
    try {
      if (!this.stopped) answered = await this.ask();
    } finally {
      this.asking = false;
    }
    if (!answered) this.again = true;
    this.next(answered ? this.settleMs : this.retryMs);
  }
}
