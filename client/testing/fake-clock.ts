/** The client's clock, turned by the test. It begins at a date, for a client knows no other time. */

import { FakeClock as SharedFakeClock } from "../../shared/testing/fake-clock.ts";
import type { Clock } from "../ports.ts";

export class FakeClock extends SharedFakeClock implements Clock {
  constructor() {
    super(1_700_000_000_000);
  }

  soon(run: () => void): void {
    this.after(0, run);
  }

  /** Turns in which nothing happens are many here: no round through the event loop for each. */
  protected override async settled(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) await undefined;
  }
}
