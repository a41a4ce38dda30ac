/** A load process: takes commands from the bench that forked it, one at a time, and reports back. */

import { Load } from "./load.ts";
import type { Command, Report } from "./plan.ts";

let load: Load | undefined;

process.on("message", (command: Command) => void obey(command).catch(fail));
process.on("uncaughtException", fail); // Among them what a room's judge throws: the run is void.
process.on("disconnect", () => process.exit(0));

async function obey(command: Command): Promise<void> {
  switch (command.kind) {
    case "open":
      load = await Load.open(command.rooms);
      return report({ kind: "opened" });
    case "run": {
      const events = { measuring: () => report({ kind: "measuring" }), measured: () => report({ kind: "measured" }) };
      return report({ kind: "ran", result: await load!.run(command.phase, events) });
    }
    case "close":
      return report({ kind: "closed", rooms: load!.close() });
  }
}

function report(said: Report): void {
  process.send!(said);
}

function fail(error: unknown): void {
  process.send?.({ kind: "failed", reason: error instanceof Error ? (error.stack ?? error.message) : String(error) } satisfies Report, () =>
    process.exit(1),
  );
}
