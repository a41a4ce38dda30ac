/** The client's clock, advanced by the test. It starts at a date, because a client knows no other time. */

import { FakeClock as SharedFakeClock } from "../../shared/testing/fake-clock.ts";
import type { ClientClock } from "../ports.ts";

export class ClientFakeClock extends SharedFakeClock implements ClientClock {
  constructor() {
    super(1_700_000_000_000);
  }

  soon(run: () => void): void {
    this.after(0, run);
  }

  /** Many turns do nothing in these tests, so each skips the round through the event loop. */
  protected override async settled(): Promise<void> {
    for (let turn = 0; turn < 6; turn++) await undefined;
  }
}
