/** One run of placement, on a simulated line. */

import { natsQuestions } from "../../placement/io/nats-questions.ts";
import { hostPlacement } from "../../placement/placement-host.ts";
import { SimLine } from "./sim-line.ts";
import type { SimProcess } from "./sim-process.ts";
import type { World } from "./world.ts";

export class PlacementProcess {
  readonly process: SimProcess;
  readonly line: SimLine;

  constructor(world: World, name: string) {
    this.process = world.process(name);
    this.line = new SimLine(this.process, world.nats, world.scheduler, world.latencyMs);
    const { entries } = world.log;
    const log = world.logOf(name);
    const rooms = { entry: async (room: Parameters<typeof entries.read>[0]) => (await this.line.ask(() => entries.read(room), () => entries.isThere)).entry };
    hostPlacement({ rooms, questions: natsQuestions(this.line.connection, world.subjects, log) }, world.settings.placement, { clock: this.process.clock, log, metrics: world.telemetry.placement });
  }
}
