/** A load process: carries out commands from the bench that forked it, one at a time, and reports the results. */

import { RoomsLoad } from "./load.ts";
import type { LoadCommand, LoadReport } from "./plan.ts";

let load: RoomsLoad | undefined;

process.on("message", (command: LoadCommand) => void obey(command).catch(fail));
process.on("uncaughtException", fail); // Includes the errors of a room's judge, which make the run invalid.
process.on("disconnect", () => process.exit(0));

async function obey(command: LoadCommand): Promise<void> {
  switch (command.kind) {
    case "open":
      load = await RoomsLoad.open(command.rooms);
      return report({ kind: "opened" });
    case "run": {
      const events = { measuring: () => report({ kind: "measuring" }), measured: () => report({ kind: "measured" }) };
      return report({ kind: "ran", result: await load!.run(command.phase, events) });
    }
    case "close":
      return report({ kind: "closed", rooms: load!.close() });
  }
}

function report(message: LoadReport): void {
  process.send!(message);
}

function fail(error: unknown): void {
  process.send?.(
    { kind: "failed", reason: error instanceof Error ? (error.stack ?? error.message) : String(error) } satisfies LoadReport,
    () => process.exit(1),
  );
}
