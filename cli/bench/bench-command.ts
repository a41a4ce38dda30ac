/**
 * `coroom bench`: a load test against a running system through the SDK, in rooms of its own, which it deletes
 * afterwards, also after Ctrl-C.
 */

import { randomBytes } from "node:crypto";

import { SettingError } from "../../shared/settings/settings.ts";
import type { PrintLine } from "../command.ts";
import { DocumentError, DocumentsClient } from "../documents-client.ts";
import { type BenchAccess, benchAccess } from "./access.ts";
import { BenchRun } from "./bench-run.ts";
import type { BenchConfig } from "./bench-settings.ts";
import { type BenchFigures, count, failureOf } from "./figures.ts";
import { planBench, rampUpSecondsOf, ROOM_PREFIX } from "./plan.ts";
import { loadText, reportText } from "./report.ts";

/** Deletions at the same time. */
const PARALLEL = 4;
const NO_ROOM = "no-room";
const REFUSED = [401, 403];

/**
 * Prints the figures, with `json` as one JSON value and nothing else. Throws SettingError if the run is impossible, if
 * nobody could join, or if an edit was lost. `signal`: ends the load, and the rooms are deleted.
 */
export async function bench(config: BenchConfig, print: PrintLine, signal: AbortSignal): Promise<void> {
  const tag = randomBytes(4).toString("hex");
  const plan = planBench(config, tag);
  const access = await benchAccess(config, Date.now());
  await refuseUndeletable(access, tag);
  const report: PrintLine = config.json ? () => {} : print;
  report(loadText(access.url, access.tenant, plan.load));
  report(`joining over ${rampUpSecondsOf(plan.load)} s, in rooms ${plan.rooms[0]} and so on; they are deleted at the end`);
  const figures = await measure(new BenchRun(plan, access, signal), { access, signal, report, seconds: config.seconds });
  print(config.json ? JSON.stringify(figures, null, 2) : reportText(figures));
  const failure = failureOf(figures);
  if (failure !== undefined) throw new SettingError(failure);
}

type Surroundings = {
  readonly access: BenchAccess;
  readonly signal: AbortSignal;
  readonly report: PrintLine;
  readonly seconds: number;
};

async function measure(run: BenchRun, { access, signal, report, seconds }: Surroundings): Promise<BenchFigures> {
  let figures: Omit<BenchFigures, "rooms">;
  try {
    await run.join();
    if (run.opened > 0 && !signal.aborted) {
      report(`${count(run.opened)} people have joined; load for ${seconds} s`);
      await run.runLoad();
    }
    if (signal.aborted) report("stopping: waiting for the last edits, then the rooms are deleted");
    await run.settle();
    figures = run.figures();
  } finally {
    run.leave();
  }
  return { ...figures, rooms: await deleteRooms(access, run.enteredRooms) };
}

type DeletedRooms = { readonly deleted: number; readonly left: readonly string[]; readonly why: string };

/**
 * Asks for the deletion of a room that never existed. Throws SettingError if no gateway answers, or if the tokens do not
 * permit what the run needs.
 */
async function refuseUndeletable(access: BenchAccess, tag: string): Promise<void> {
  try {
    await deleteRoom(access, `${ROOM_PREFIX}${tag}-check`, 0);
  } catch (error) {
    if (!(error instanceof DocumentError)) throw error;
    throw new SettingError(
      `the gateway at ${access.url} would refuse to delete the rooms of this run: ${error.message}${REFUSED.includes(error.status) ? `. ${access.remedy}` : ""}`,
      { cause: error },
    );
  }
}

/** Each room with the user of another person, because a gateway limits the deletions of one user. */
async function deleteRooms(access: BenchAccess, rooms: readonly string[]): Promise<DeletedRooms> {
  const left: string[] = [];
  let [next, why] = [0, ""];
  const deleteNext = async (): Promise<void> => {
    while (next < rooms.length) {
      const index = next++;
      try {
        await deleteRoom(access, rooms[index]!, index);
      } catch (error) {
        if (!(error instanceof DocumentError) && !(error instanceof SettingError)) throw error;
        left.push(rooms[index]!);
        why ||= error.message;
      }
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, deleteNext));
  return { deleted: rooms.length - left.length, left, why };
}

async function deleteRoom(access: BenchAccess, room: string, person: number): Promise<void> {
  const client = new DocumentsClient(access.url, () => access.adminTokenOf(person));
  try {
    await client.ask(`/${encodeURIComponent(room)}`, { method: "DELETE" });
  } catch (error) {
    if (!(error instanceof DocumentError) || error.code !== NO_ROOM) throw error;
  }
}
