/**
 * Removes what a crash left behind of one room: snapshots that its checkpoint does not name, and parts of its history
 * that no entry does.
 */

import type { Clock } from "../../shared/clock.ts";
import { within } from "../../shared/pause.ts";
import type { HistoryHost } from "../past/history-host.ts";
import type { CheckpointHost } from "./checkpoint-host.ts";
import type { Document } from "./document.ts";
import type { IntakeHost } from "./intake-host.ts";
import type { WipeHost } from "./wipe-host.ts";
import type { WorkHost } from "./work-host.ts";

/** Of one room. */
export type OrphansParts = {
  readonly intake: Pick<IntakeHost, "opened" | "isOpening">;
  readonly work: WorkHost;
  readonly wipe: Pick<WipeHost, "isDeleted" | "isDue">;
  readonly checkpoints: Pick<CheckpointHost, "replace" | "removeSnapshot">;
  readonly history: Pick<HistoryHost, "removeOrphans">;
};

/** A look for what a crash left behind goes on to the next room then. */
const OPEN_MS_MAX = 5_000;

export class OrphansHost {
  readonly #parts: OrphansParts;
  readonly #clock: Clock;

  constructor(parts: OrphansParts, { clock }: { clock: Clock }) {
    this.#parts = parts;
    this.#clock = clock;
  }

  /** Where the room's checkpoint cannot be read they stay. False: there is other work to be done first. */
  async removeSnapshots(names: readonly string[]): Promise<boolean> {
    const { intake, work, wipe } = this.#parts;
    const document = await within(this.#clock, OPEN_MS_MAX, intake.opened, undefined);
    if (document === undefined) return true;
    if (intake.isOpening || work.isBusy || wipe.isDue) return false;
    await work.run("what a crash left behind was not removed", () =>
      wipe.isDeleted ? this.#remove(names) : this.#removeUnnamed(document, names),
    );
    return true;
  }

  async removeHistory(names: readonly string[]): Promise<void> {
    const { history, work } = this.#parts;
    try {
      await history.removeOrphans(names);
    } catch (cause) {
      work.receiveFailure("what a crash left behind of its history was not removed", cause);
    }
  }

  /**
   * Whoever wrote them may only be slow and about to name one: the checkpoint is written again first, so that it finds
   * another revision than it knows and gives up.
   */
  async #removeUnnamed(document: Document, names: readonly string[]): Promise<void> {
    const { checkpoint } = document;
    const orphans = names.filter((name) => name !== checkpoint?.snapshot.object);
    if (checkpoint === undefined || orphans.length === 0) return;
    if (await this.#parts.checkpoints.replace(document, { ...checkpoint, time: this.#clock.wallNow() })) await this.#remove(orphans);
  }

  async #remove(names: readonly string[]): Promise<void> {
    for (const name of names) await this.#parts.checkpoints.removeSnapshot(name);
  }
}
