/**
 * What a room has at hand while it is written in. It is made with the first edit, and let go of once nothing is left of it:
 * of rooms in which nobody writes it was a third of what an owner keeps of each beside its members, some 300 bytes.
 */

import type { RoomKey } from "../../shared/ids.ts";
import type { Seal } from "../ports.ts";
import { GroupCommit } from "./group-commit.ts";
import { Intake, type IntakeOptions } from "./intake.ts";
import { SavingNews } from "./saving.ts";
import type { TellingOptions } from "./beacons.ts";
import type { Sequencer } from "./sequencer.ts";

export class Writing {
  readonly unacked: GroupCommit;
  readonly intake: Intake;
  readonly savingNews: SavingNews;

  constructor(key: RoomKey, parts: { readonly sequencer: Sequencer; readonly seal: Seal }, options: IntakeOptions & TellingOptions) {
    this.unacked = new GroupCommit(options);
    this.intake = new Intake(key, { ...parts, unacked: this.unacked }, options);
    this.savingNews = new SavingNews(options);
  }

  /** Whether one that is made anew would do the same. */
  get isOver(): boolean {
    return this.unacked.isIdle && this.intake.isIdle && this.savingNews.isIdle;
  }
}
