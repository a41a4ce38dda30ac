/** A client that reads slowly catches up with any number of edits over one connection. */

import { expect, test } from "vitest";

import type { ClientId } from "../shared/ids.ts";
import { FakeLog } from "./testing/fake-owner.ts";
import { gatewayRig, ROOM } from "./testing/gateway-rig.ts";

const rig = gatewayRig("catching");

test(
  "[SLOW9] a reader at a slow rate receives 40 MiB and the edits of the meantime over one connection, with little queued",
  { timeout: 60_000 },
  async () => {
    const stored = Array.from({ length: 160 }, () => new Uint8Array(256 * 1024));
    rig.startOwner(FakeLog.of("AAAAAAAAAAAAAAAA" as ClientId, stored));
    const address = await rig.start({ outboundBytesMax: "2000000" }); // A connection with more unread data is cut.
    const [ann, bob] = [await rig.greet(address, "ann"), await rig.greet(address, "bob")];
    const { channel } = await ann.join(ROOM, "annannann", { epoch: 1, seq: stored.length } as never);
    bob.readSlowly(80);
    await bob.join(ROOM, "bobbobbob");
    ann.edit(channel, 1, "meanwhile");
    const isComplete = (): boolean => {
      const last = bob.received.at(-1);
      return bob.closed !== undefined || (last?.type === "committed" && last.edits.firstSeq > stored.length);
    };
    await bob.until(isComplete, "all edits");
    expect([bob.closed, [...bob.committed().keys()]]).toEqual([undefined, Array.from({ length: 161 }, (_, index) => index + 1)]);
  },
);
