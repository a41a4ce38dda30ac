/** What is done to the owner of rooms, or to the leader of their log, and how it is undone. */

import { opsStepDownSettings } from "../cli/ops-settings.ts";
import { stepDown } from "../cli/ops-step-down.ts";
import { OrderReply } from "../shared/bus/placement-messages.ts";
import { subjectsOf } from "../shared/bus/subjects.ts";
import { readSettings } from "../shared/config.ts";
import type { NatsConnection } from "../shared/io/nats.ts";
import { askNats } from "../shared/io/nats-ask.ts";
import type { Engine } from "../engines/engine.ts";
import type { Cluster } from "../test/system/cluster.ts";
import type { OwningServer } from "./typing-cluster.ts";

/** `left alone`: what a room notices of this machine being busy. `stopped`: in good order, as a rolling restart does it. `emptied`: its rooms are moved away while it runs on. */
const OF_THE_OWNER = ["left alone", "killed", "paused", "cut off", "stopped", "emptied"] as const;
/** These need three nats-servers. `log leader restarted`: asked to step down, stopped and started again. */
const OF_THE_LOG = ["log leader killed", "log leader paused", "log leader restarted"] as const;

export const DISTURBANCES = [...OF_THE_OWNER, ...OF_THE_LOG] as const;
export type Disturbance = (typeof DISTURBANCES)[number];

export type Victims = OwningServer & { readonly cluster: Cluster; readonly nats: NatsConnection; readonly logLeader: Engine };

/** Returns what undoes it. */
export async function strike(
  disturbance: Disturbance,
  { cluster, nats, server, process: owner, line, logLeader }: Victims,
): Promise<() => Promise<void>> {
  switch (disturbance) {
    case "left alone":
      return async () => {};
    case "killed":
      await owner.kill();
      return () => owner.startAgain();
    case "paused":
      owner.signal("SIGSTOP");
      return async () => owner.signal("SIGCONT");
    case "cut off":
      line.cut();
      return async () => line.mend();
    case "emptied":
      await askNats(nats, subjectsOf(cluster.environment).order(server), { kind: "drain" }, OrderReply, 1_000);
      return () => owner.restart();
    case "stopped":
      owner.signal("SIGTERM");
      return async () => {
        await owner.exited;
        await owner.startAgain();
      };
    case "log leader killed":
      logLeader.kill("SIGKILL");
      await logLeader.exited;
      return () => logLeader.restart();
    case "log leader paused":
      logLeader.kill("SIGSTOP");
      return async () => logLeader.kill("SIGCONT");
    case "log leader restarted": {
      const name = `nats-${cluster.natsServers.indexOf(logLeader) + 1}`;
      await stepDown(
        readSettings(opsStepDownSettings, { flags: { natsUrl: cluster.natsUrl, environment: cluster.environment, server: name }, env: {} }),
        () => {},
      );
      await logLeader.restart();
      return async () => {};
    }
  }
}

export function isOfTheLog(disturbance: Disturbance): boolean {
  return OF_THE_LOG.some((one) => one === disturbance);
}
