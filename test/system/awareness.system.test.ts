/**
 * Awareness of the SDK between real processes: visible across gateways, and preserved when a gateway or the room's
 * owner dies.
 */

import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import * as Y from "yjs";

import { type RoomId, roomKey, type TenantId } from "../../shared/ids.ts";
import { CoroomProvider } from "../../client/index.ts";
import { Balancer } from "./balancer.ts";
import { SystemCluster, type RunningGateway } from "./cluster.ts";
import { eventually } from "./eventually.ts";
import { ownerOf } from "./owner.ts";

/** Long limits: on a slow machine no presence is shed, and no live process counts as dead. */
const UNDISTURBED = {
  SHED_DELAY_MS_MIN: "60000",
  SHED_NATS_LAG_MS_MIN: "60000",
  SHARE_DELAY_MS_MIN: "60000",
  PRESENCE_GATHER_MS: "1500",
  GATEWAY_SILENCE_MS_MAX: "4000",
};

let cluster: SystemCluster;
let balancer: Balancer;
let providers: CoroomProvider[] = [];

beforeAll(async () => {
  cluster = await SystemCluster.start({ gateways: 2, roomServers: 2, settings: UNDISTURBED });
  balancer = await Balancer.before(cluster.gateways);
});
afterEach(() => {
  for (const provider of providers) provider.destroy();
  providers = [];
});
afterAll(async () => {
  await balancer.stop();
  await cluster.stop();
});

async function enter(room: string, name: string, { url }: Pick<RunningGateway, "url">): Promise<CoroomProvider> {
  const provider = new CoroomProvider({ url, room, doc: new Y.Doc(), token: await cluster.token(room, name) });
  provider.awareness.setLocalStateField("user", { name });
  providers.push(provider);
  return provider;
}

/** The awareness states of the other clients, with their names. */
function moodsSeenBy({ awareness }: CoroomProvider): string {
  const others = [...awareness.getStates()].filter(([client]) => client !== awareness.clientID);
  return others
    .map(([, { user, mood }]) => `${user?.name} ${mood ?? "?"}`)
    .sort()
    .join();
}

test("[AWA7] people on two gateways see each other's latest state, and who joins and leaves", async () => {
  const [one, other] = cluster.gateways as [RunningGateway, RunningGateway];
  const [ann, bob] = [await enter("across", "Ann", one), await enter("across", "Bob", other)];
  for (let mood = 0; mood <= 50; mood++) ann.awareness.setLocalStateField("mood", mood);
  bob.awareness.setLocalStateField("mood", "calm");
  await eventually("each sees the other", () => moodsSeenBy(bob) === "Ann 50" && moodsSeenBy(ann) === "Bob calm");
  const late = await enter("across", "Cid", one);
  await eventually("a later participant sees both", () => moodsSeenBy(late) === "Ann 50,Bob calm");
  const roster = (): string =>
    [...late.participants.values()]
      .map(({ name, self, role }) => `${name} ${self ? "self" : role}`)
      .sort()
      .join();
  await eventually("and is there as well", () => roster() === "Ann editor,Bob editor,Cid self");
  ann.awareness.setLocalState(null);
  bob.destroy();
  await eventually("participants that hide or leave are not seen", () => moodsSeenBy(late) === "");
  expect(late.mode).toMatchObject({ mode: "flat", shed: 0 });
});

test("[AWA8] when the owner of a room dies no client disappears, and later states are seen", async () => {
  const [one, other] = cluster.gateways as [RunningGateway, RunningGateway];
  const [ann, bob] = [await enter("failover", "Ann", one), await enter("failover", "Bob", other)];
  ann.awareness.setLocalStateField("mood", "before");
  await eventually("they see each other", () => moodsSeenBy(bob) === "Ann before" && moodsSeenBy(ann) === "Bob ?");
  let removed = 0;
  for (const { awareness } of [ann, bob]) awareness.on("change", (change: { removed: number[] }) => (removed += change.removed.length));

  const owner = await ownerOf(cluster, roomKey("default" as TenantId, "failover" as RoomId));
  await owner.kill();
  ann.awareness.setLocalStateField("mood", "after");
  await eventually("the next owner knows", () => moodsSeenBy(bob) === "Ann after");
  expect(removed).toBe(0);
  await owner.restart();
});

test("[AWA9] when a gateway dies its clients return elsewhere as the same participants, each once", async () => {
  const [one, other] = cluster.gateways as [RunningGateway, RunningGateway];
  const bob = await enter("gateway", "Bob", other);
  const ann = await enter("gateway", "Ann", balancer);
  ann.awareness.setLocalStateField("mood", "here");
  await eventually("they see each other", () => moodsSeenBy(bob) === "Ann here");
  await one.process.kill();
  ann.awareness.setLocalStateField("mood", "still here");
  await eventually(
    "she is there again, and only once",
    () => moodsSeenBy(bob) === "Ann still here" && bob.participants.size === 2 && moodsSeenBy(ann) === "Bob ?",
  );
  await one.process.restart();
});
