/** Facts about the machine, which are needed to interpret a figure. */

import { cpus, loadavg, release } from "node:os";

import { BINARIES, showVersion } from "../engines/binaries.ts";
import { findBinary } from "../engines/find.ts";

type Machine = {
  readonly cores: number;
  readonly cpu: string;
  readonly kernel: string;
  readonly node: string;
  readonly natsServer: string;
  readonly loadAverage: string;
};

export async function machineFacts(): Promise<Machine> {
  const nats = await findBinary(BINARIES.natsServer);
  return {
    cores: cpus().length,
    cpu: cpus()[0]?.model ?? "unknown",
    kernel: release(),
    node: process.version,
    natsServer: showVersion(nats.version),
    loadAverage: loadavg()[0]!.toFixed(2),
  };
}
