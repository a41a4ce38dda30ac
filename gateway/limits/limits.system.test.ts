/**
 * Real sockets reach each limit on gateways that share a real nats-server, and get its error, its retry time and its
 * metric.
 */

import { connect } from "node:net";

import { expect, onTestFinished, test } from "vitest";

import { encodeCountsReport } from "../../shared/bus/counts-report.ts";
import { type Epoch, type Position, type Seq, START } from "../../shared/ids.ts";
import { encodeDelta, type ParticipantEntry } from "../../shared/wire/presence.ts";
import { until } from "../../test/contract/real-nats.ts";
import { gatewayRig, metric, ROOM, TENANT, tokenOf } from "../testing/gateway-rig.ts";
import type { WireClient } from "../testing/wire-client.ts";

const rig = gatewayRig("limits", { clientAddressHeader: "", retryAfterMs: "7000", abusePointsMax: "1000000", helloMsMax: "600000" });

/** Waits until the gateway receives another gateway's counts. */
async function acquainted(address: string): Promise<void> {
  await until(async () => (await metric(address, "coroom_gateway_count_sources")) > 0, "another's counts");
}

test("[LIM1] an address has a maximum of connections over all gateways, and the counts of a dead gateway are forgotten", async () => {
  const settings = { connectionsPerIpMax: "3", clientAddressHeader: "x-forwarded-for" };
  const [one, two] = [await rig.start(settings), await rig.start(settings)];
  const here = "203.0.113.7";
  for (let time = 0; time < 3; time++) await rig.connect(one, here);
  await expect(rig.connect(one, here)).rejects.toThrow("HTTP 429");
  expect(await metric(one, 'coroom_gateway_turned_away_total{reason="ip"}')).toBe(1);
  const isRefused = async (): Promise<boolean> => {
    await new Promise((resolve) => setTimeout(resolve, 200)); // Continuous attempts would count as a storm of connections.
    return rig.connect(two, here).then(
      (client) => (client.close(), false),
      (error: Error) => error.message === "HTTP 429",
    );
  };
  await until(isRefused, "the other gateway to know");
  await rig.connect(two, "203.0.113.8");

  await rig.stop(one);
  await until(() => rig.connect(two, here).catch(() => undefined), "the dead gateway's counts to lapse");
});

test("[LIM2] a tenant has a maximum of connections over all gateways, and further ones are closed with a time to retry", async () => {
  const [one, two] = [await rig.start({ connectionsPerTenantMax: "2" }), await rig.start({ connectionsPerTenantMax: "2" })];
  await acquainted(two);
  await (await rig.greet(one, "ann")).next("welcome");
  await (await rig.greet(one, "bob")).next("welcome");
  const third = await rig.greet(one, "cid");
  expect([await third.next("retry-later"), (await third.end()).code]).toEqual([{ type: "retry-later", retryAfterMs: 7_000 }, 4008]);
  expect(await metric(one, 'coroom_gateway_limits_reached_total{limit="tenant"}')).toBe(1);
  await until(async () => {
    const fourth = await rig.greet(two, "dan");
    await fourth.until(() => fourth.closed !== undefined || fourth.received.length > 0, "an answer");
    fourth.close();
    return fourth.received[0]?.type === "retry-later";
  }, "the other gateway to know");
  await (await rig.greet(two, "eve", { tenant: "other" })).next("welcome");
});

test("[LIM3] a room has a maximum of members over all gateways, and a member may join again", async () => {
  rig.startOwner();
  const [one, two] = [await rig.start({ participantsPerRoomMax: "2" }), await rig.start({ participantsPerRoomMax: "2" })];
  await acquainted(two);
  const ann = await rig.greet(one, "ann");
  await ann.join(ROOM, "annannann");
  await (await rig.greet(one, "bob")).join(ROOM, "bobbobbob");
  await ann.join(ROOM, "annannan2"); // A member already.
  const refused = { reason: "room-full", retryAfterMs: 10_000 };
  const cid = await rig.greet(one, "cid");
  void cid.join(ROOM, "cidcidcid").catch(() => {});
  expect(await cid.next("join-refused")).toMatchObject(refused);
  expect(await metric(one, 'coroom_gateway_limits_reached_total{limit="room"}')).toBe(1);
  await until(async () => {
    const dan = await rig.greet(two, "dan");
    void dan.join(ROOM, "dandandan").catch(() => {});
    await dan.until(() => dan.received.length > 1, "an answer");
    dan.close();
    return dan.received.find((frame) => frame.type === "join-refused");
  }, "the other gateway to know");
});

test("[LIM4] a tenant has a maximum of open rooms: a join that would open another is refused, and open rooms can be joined", async () => {
  const owner = rig.startOwner();
  const address = await rig.start({ roomsPerTenantMax: "2" });
  const ann = await rig.greet(address, "ann");
  await ann.join(ROOM, "annannann");
  const report = (): void =>
    rig.connection.publish(
      rig.subjects.counts,
      encodeCountsReport({ source: owner.server, counts: [{ kind: "tenant-rooms", key: TENANT, count: 2 }] }, 1_000),
    );
  const reporting = setInterval(report, 100); // Repeated, because counts expire.
  onTestFinished(() => clearInterval(reporting));
  await acquainted(address);
  void ann.join("another", "annannann").catch(() => {});
  expect(await ann.next("join-refused")).toMatchObject({ reason: "tenant-rooms", retryAfterMs: 10_000 });
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="tenant-rooms"}')).toBe(1);
  await (await rig.greet(address, "bob")).join(ROOM, "bobbobbob");
});

test("[LIM5] a tenant has a maximum of edits per second: further edits are refused with a retry time, and accepted when resent", async () => {
  rig.startOwner();
  const address = await rig.start({ tenantEditsPerSecondMax: "5", editBurst: "100", resendBurst: "1000000" });
  const ann = await rig.greet(address, "ann");
  const { channel } = await ann.join(ROOM, "annannann");
  for (let counter = 1; counter <= 8; counter++) ann.edit(channel, counter, `${counter}`);
  const { counter, ...nack } = await ann.next("nack");
  expect(nack).toMatchObject({ reason: "tenant-rate", expected: counter, retryAfterMs: 1_000 });
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="tenant-edits"}')).toBeGreaterThan(0);
  const bob = await rig.greet(address, "bob");
  await bob.join(ROOM, "bobbobbob");
  await until(() => {
    const next = bob.committed().size + 1;
    if (next <= 8) ann.edit(channel, next, `${next}`, next - 1);
    return next > 8;
  }, "all eight edits");
  expect([...bob.committed().values()]).toEqual(["1", "2", "3", "4", "5", "6", "7", "8"]);
});

test("[LIM6] a connection above its rate of bytes, edits or frames is closed with a time to retry", async () => {
  rig.startOwner();
  const address = await rig.start({
    frameBytesMax: "50000",
    editBytesMax: "40000",
    bytesBurst: "50000",
    bytesPerSecond: "1",
    editsPerSecond: "1",
    controlBurst: "20",
    controlsPerSecond: "1",
    resendBurst: "3",
    resendsPerSecond: "1",
  });
  const faults: [string, (client: WireClient, channel: number) => void][] = [
    ["bytes", (client, channel) => [1, 2, 3].forEach((counter) => client.edit(channel, counter, "x".repeat(20_000)))],
    ["edits", (client, channel) => Array.from({ length: 60 }, (_, index) => client.edit(channel, index + 1, "x"))],
    ["frames", (client) => Array.from({ length: 30 }, (_, index) => client.send({ type: "ping", nonce: index }))],
  ];
  for (const [limit, flood] of faults) {
    const client = await rig.greet(address, limit);
    flood(client, (await client.join(ROOM, "annannann")).channel);
    expect([limit, await client.next("retry-later"), (await client.end()).code]).toEqual([
      limit,
      { type: "retry-later", retryAfterMs: 7_000 },
      4006,
    ]);
    expect(await metric(address, `coroom_gateway_limits_reached_total{limit="${limit}"}`)).toBe(1);
  }
});

test("[LIM7] snapshot requests above the rate of a user, or of the gateway, are refused with a retry time", async () => {
  const address = await rig.start({
    snapshotBurst: "2",
    snapshotsPerSecond: "1",
    gatewaySnapshotBurst: "3",
    gatewaySnapshotsPerSecond: "1",
  });
  const fetchAs = async (user: string): Promise<Response> =>
    fetch(`http://${address}/v1/rooms/${ROOM}/snapshot`, { headers: { authorization: `Bearer ${await tokenOf(user)}` } });
  const manyUsers = Array.from({ length: 20 }, (_, index) => `user${index}`); // The limit refills by one request per second.
  for (const [users, limit] of [
    [manyUsers.map(() => "ann"), "snapshots"],
    [manyUsers, "gateway-snapshots"],
  ] as const) {
    const answers = await Promise.all(users.map(fetchAs));
    expect([limit, [...new Set(answers.map(({ status }) => status))].sort()]).toEqual([limit, [429, 503]]); // 503: no document service exists here.
    for (const { status, headers } of answers) if (status === 429) expect(headers.get("retry-after")).toBe("2");
    expect(await metric(address, `coroom_gateway_limits_reached_total{limit="${limit}"}`)).toBeGreaterThanOrEqual(1);
  }
});

test("[LIM8] every other limit of a connection has its answer and its metric", async () => {
  rig.startOwner();
  const address = await rig.start({
    roomsPerConnectionMax: "1",
    frameBytesMax: "4000",
    editBytesMax: "1000",
    presenceBurst: "10",
    presencePerSecondMax: "1",
    presenceMemberBytesMax: "200",
    catchUpBytesBurst: "10",
    catchUpBytesPerSecond: "1",
    editsPerSecond: "1",
    resendBurst: "5",
    resendsPerSecond: "1",
  });
  const bytes = (count: number): Uint8Array => new Uint8Array(count).fill(1);
  const repeat = (count: number, run: (index: number) => void): void => Array.from({ length: count }, (_, index) => index).forEach(run);
  const cases: readonly [
    what: string,
    meet: (client: WireClient, channel: number) => void,
    answer: (client: WireClient) => Promise<unknown>,
    expected: unknown,
    sample: string,
  ][] = [
    [
      "one room too many",
      (client) => void client.join("another", "annannann").catch(() => {}),
      async (client) => (await client.next("join-refused")).reason,
      "too-many-rooms",
      'coroom_gateway_joins_total{outcome="too-many-rooms"}',
    ],
    [
      "an edit too large",
      (client, channel) => client.edit(channel, 1, "x".repeat(2_000)),
      async (client) => (await client.next("nack")).reason,
      "too-large",
      'coroom_gateway_nacks_total{reason="too-large"}',
    ],
    [
      "a frame too large",
      (client) => client.sendBytes(bytes(5_000)),
      async (client) => (await client.end()).code,
      4104,
      'coroom_gateway_closes_total{close="frameTooLarge"}',
    ],
    [
      "presence a little too fast",
      (client, channel) => repeat(20, (x) => client.send({ type: "presence", channel, fields: [{ name: "x", value: bytes(1 + x) }] })),
      async (client) => client.closed,
      undefined,
      'coroom_gateway_presence_refused_total{limit="rate"}',
    ],
    [
      "presence far too fast",
      (client, channel) => repeat(60, () => client.send({ type: "presence", channel, fields: [] })),
      async (client) => (await client.end()).code,
      4006,
      'coroom_gateway_limits_reached_total{limit="presence"}',
    ],
    [
      "presence too large",
      (client, channel) => client.send({ type: "presence", channel, fields: [{ name: "x", value: bytes(500) }] }),
      async (client) => (await client.next("error")).type,
      "error",
      'coroom_gateway_presence_refused_total{limit="bytes"}',
    ],
    [
      "the same edit again and again",
      (client, channel) => repeat(30, () => client.edit(channel, 1, "x")),
      async (client) => (await client.end()).code,
      4006,
      'coroom_gateway_limits_reached_total{limit="edits"}',
    ],
  ];
  for (const [what, meet, answer, expected, sample] of cases) {
    const before = await metric(address, sample);
    const client = await rig.greet(address, "ann");
    meet(client, (await client.join(ROOM, "annannann")).channel);
    expect([what, await answer(client)]).toEqual([what, expected]);
    await until(async () => (await metric(address, sample)) > before, `${what} to be counted`);
    client.close();
  }
});

test("[LIM9] a connection that has used up its bytes of catch-up is closed at its next request, and one that requests nothing is not", async () => {
  rig.startOwner();
  const address = await rig.start({ catchUpBytesBurst: "200", catchUpBytesPerSecond: "1" });
  const ann = await rig.greet(address, "ann");
  const { channel } = await ann.join(ROOM, "annannann");
  for (let counter = 1; counter <= 5; counter++) ann.edit(channel, counter, "x".repeat(100), counter - 1);
  const bob = await rig.greet(address, "bob");
  await until(async () => (await metric(address, "coroom_gateway_committed_edits_total")) === 5, "the edits");
  await bob.join(ROOM, "bobbobbob");
  await bob.until(() => bob.committed().size === 5, "the earlier edits");
  void bob.join(ROOM, "bobbobbob").catch(() => {});
  expect((await bob.end()).code).toBe(4006);
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="catch-ups"}')).toBe(1);
  expect(ann.closed).toBeUndefined();
});

test("[LIM10] connections above the maximum of a gateway are refused with HTTP 503, and a silent connection is closed and frees its place", async () => {
  const address = await rig.start({ connectionsMax: "1", silenceMsMax: "1500", pingIntervalMs: "750" });
  const ann = await rig.connect(address); // Silence is measured from HELLO on.
  await expect(rig.connect(address)).rejects.toThrow("HTTP 503");
  expect(await metric(address, 'coroom_gateway_turned_away_total{reason="full"}')).toBe(1);
  ann.send({ type: "hello", version: 1, token: await tokenOf("ann"), agent: "test" });
  await ann.next("welcome");
  expect((await ann.end()).code).toBe(4004);
  expect(await metric(address, 'coroom_gateway_closes_total{close="silent"}')).toBe(1);
  await until(() => rig.connect(address).catch(() => undefined), "the place to be free");
});

test("[LIM11] a backend that reports activities above its rate is refused", async () => {
  const address = await rig.start({ activityBurst: "2", activitiesPerSecond: "1" });
  const token = await tokenOf("backend", { rights: ["award"] });
  const reportActivity = async (): Promise<number> =>
    (
      await fetch(`http://${address}/v1/rooms/${ROOM}/activities`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        body: "{}",
      })
    ).status;
  const answers = await Promise.all(Array.from({ length: 20 }, reportActivity)); // The limit refills by one request per second.
  expect([...new Set(answers)].sort()).toEqual([400, 429]); // 400: the body holds no activities.
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="activities"}')).toBe(
    answers.filter((status) => status === 429).length,
  );
});

test("[LIM12] a client that does not read receives no presence once too many bytes wait for it, and every edit when it reads again", async () => {
  rig.startOwner();
  const address = await rig.start({
    behindBytesMax: "10000",
    slowMsMax: "60000",
    slowBytesMax: "1000000000",
    outboundBytesMax: "1000000000",
    editBurst: "1000",
    bytesBurst: "1000000000",
  });
  const [ann, bob] = [await rig.greet(address, "ann"), await rig.greet(address, "bob")];
  const { channel } = await ann.join(ROOM, "annannann");
  await bob.join(ROOM, "bobbobbob");
  bob.pause();
  const edits = 150; // More than the send buffer of the kernel.
  await ann.flood(channel, edits, "x".repeat(100_000));
  await until(async () => (await metric(address, "coroom_gateway_presence_behind_total")) > 0, "somebody to be seen far behind");
  await until(async () => (await metric(address, "coroom_gateway_behind_connections")) === 1, "bob alone to be behind");
  bob.resume();
  await until(() => bob.committed().size === edits, "every edit");
  expect(bob.closed).toBeUndefined();
});

test("[LIM13] a connection in the admission queue counts for its address until it leaves", async () => {
  const address = await rig.start({
    connectionsPerIpMax: "3",
    clientAddressHeader: "x-forwarded-for",
    connectsPerSecondMax: "1",
    connectQueueMax: "1000",
  });
  for (let other = 1; other <= 30; other++) await rig.connect(address, `198.51.100.${other}`); // Turns for half a minute.
  const here = "203.0.113.7";
  const waiting = [await rig.connect(address, here), await rig.connect(address, here), await rig.connect(address, here)];
  await expect(rig.connect(address, here)).rejects.toThrow("HTTP 429");
  await rig.connect(address, "203.0.113.8");
  waiting[0]!.close();
  await until(() => rig.connect(address, here).catch(() => undefined), "the one that left to count no more");
});

test("[LIM14] members of a full room join again at another gateway with their position, and no gateway admits more than the maximum that way", async () => {
  rig.startOwner();
  const settings = { participantsPerRoomMax: "2" };
  const [one, two] = [await rig.start(settings), await rig.start(settings)];
  const ann = await rig.greet(one, "ann");
  const { epoch } = await ann.join(ROOM, "annannann");
  await (await rig.greet(one, "bob")).join(ROOM, "bobbobbob");
  const position = { epoch, seq: 0 as Seq };
  const answerTo = async (user: string, from: Position): Promise<string> => {
    const client = await rig.greet(two, user);
    void client.join(ROOM, user.repeat(3), from).catch(() => {});
    await client.until(() => client.received.length > 1, "an answer");
    const { type } = client.received[1]!;
    if (from === START) client.close();
    return type;
  };
  await until(async () => (await answerTo("new", START)) === "join-refused", "the other gateway to know");
  expect([await answerTo("ann", position), await answerTo("bob", position), await answerTo("cid", position)]).toEqual([
    "joined",
    "joined",
    "join-refused",
  ]);
});

test("[LIM15] a gateway that stops leaves no counts behind", async () => {
  const settings = { connectionsPerIpMax: "1", clientAddressHeader: "x-forwarded-for" };
  const [one, two] = [await rig.start(settings), await rig.start(settings)];
  const here = "203.0.113.7";
  const mayConnect = (): Promise<boolean> =>
    rig.connect(two, here).then(
      (client) => (client.close(), true),
      () => false,
    );
  await rig.connect(one, here);
  await until(async () => (await metric(two, "coroom_gateway_count_sources")) > 0 && !(await mayConnect()), "the other gateway to know");
  await rig.stop(one);
  await until(mayConnect, "the counts to be gone");
});

test("[LIM16] a member of a full room may reconnect with at most three connections", async () => {
  const gateway = await rig.start({ participantsPerRoomMax: "1" });
  let present: ParticipantEntry[] = [];
  rig.startOwner().onPresence = (message, reply) => {
    if (message.kind === "members") present = message.entered.map((member) => ({ ...member, number: 1 }));
    const status = { mode: "flat", participants: 1, presencePerSecond: 30, shed: 0 } as const;
    reply({
      kind: "snapshot",
      epoch: 1 as Epoch,
      number: present.length,
      status,
      delta: encodeDelta({ snapshot: true, present, gone: [], states: [] }),
    });
  };
  const answer = async (): Promise<string> => {
    const client = await rig.greet(gateway, "ann");
    void client.join(ROOM, "annannann").catch(() => {});
    await client.until(() => client.received.length > 1, "an answer");
    return client.received[1]!.type;
  };
  expect(await answer()).toBe("joined");
  await until(async () => (await metric(gateway, "coroom_gateway_presence_syncs_total")) > 1, "the gateway to know the participants");
  expect([await answer(), await answer(), await answer()]).toEqual(["joined", "joined", "join-refused"]);
});

test("[LIM17] clients of a draining gateway are admitted by another gateway although their user and tenant are at their limits", async () => {
  const settings = { connectionsPerUserMax: "1", connectionsPerTenantMax: "1", drainMsMax: "60000" };
  const [one, two] = [await rig.start(settings), await rig.start(settings)];
  const ann = await rig.greet(one, "ann");
  await ann.next("welcome");
  const connectToOther = async (): Promise<WireClient | undefined> => {
    const client = await rig.greet(two, "ann");
    await client.until(() => client.closed !== undefined || client.received.length > 0, "an answer");
    if (client.received[0]?.type === "welcome") return client;
    client.close();
    return undefined;
  };
  await acquainted(two);
  await until(async () => {
    const early = await connectToOther();
    early?.close();
    return early === undefined;
  }, "the other gateway to know");
  const stopped = rig.stop(one);
  await ann.next("going-away");
  const moved = await until(connectToOther, "its place at the other");
  expect(ann.closed).toBeUndefined();
  ann.close();
  moved.close();
  await stopped;
});

test("[LIM18] a connection above the limit of its user is admitted on credit, and closed if no other connection was lost", async () => {
  // Long limits, so that no client counts as silent while this process, which plays all clients, pauses.
  const address = await rig.start({ connectionsPerUserMax: "10", pingIntervalMs: "1500", silenceMsMax: "4000" });
  const clients: WireClient[] = [];
  const pinging = setInterval(() => clients.forEach((client, nonce) => client.closed ?? client.send({ type: "ping", nonce })), 200);
  onTestFinished(() => clearInterval(pinging));
  for (let number = 0; number < 11; number++) {
    clients.push(await rig.greet(address, "ann"));
    await clients.at(-1)!.next("welcome");
  }
  const more = await rig.greet(address, "ann");
  const refused = [{ type: "retry-later", retryAfterMs: 7_000 }, 4008];
  expect([await more.next("retry-later"), (await more.end()).code]).toEqual(refused);
  expect(await metric(address, "coroom_gateway_connections_on_credit")).toBeLessThanOrEqual(1);
  const last = clients.at(-1)!;
  expect([await last.next("retry-later"), (await last.end()).code]).toEqual(refused);
  expect(clients.filter(({ closed }) => closed !== undefined)).toEqual([last]);
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="user"}')).toBe(2);
});

test("[LIM20] an office behind one address has any number of connections, as long as each sends a valid token", async () => {
  const address = await rig.start({ connectionsPerIpMax: "3", clientAddressHeader: "x-forwarded-for" });
  const from = "203.0.113.7";
  for (let number = 0; number < 12; number++) await (await rig.greet(address, `user-${number}`, { from })).next("welcome");
  for (let number = 0; number < 3; number++) await rig.connect(address, from);
  await expect(rig.connect(address, from), "without tokens").rejects.toThrow("HTTP 429");
});

test("[LIM21] a user who types over several connections and rooms shares one limit of edits per second", async () => {
  rig.startOwner();
  const address = await rig.start({ userEditsPerSecondMax: "5", editBurst: "100", resendBurst: "1000000" });
  const clients = await Promise.all(
    ["annannann", "ann-2-ann-2"].map(async (key) => {
      const client = await rig.greet(address, "ann");
      return { client, channel: (await client.join(ROOM, key)).channel };
    }),
  );
  const bob = await rig.greet(address, "bob");
  const { channel: bobs } = await bob.join(ROOM, "bobbobbob");
  for (let counter = 1; counter <= 10; counter++) for (const { client, channel } of clients) client.edit(channel, counter, `${counter}`);
  for (const { client } of clients) await client.next("nack");
  bob.edit(bobs, 1, "1");
  await until(async () => (await metric(address, 'coroom_gateway_limits_reached_total{limit="user-edits"}')) >= 10, "the limit's count");
  expect(
    bob.received.some(({ type }) => type === "nack"),
    "another user is not affected",
  ).toBe(false);
});

test("[LIM19] all request bodies of a gateway share one limit; above it the request that began first is refused with a retry time", async () => {
  const address = await rig.start({ bodiesBytesMax: "1000", editBytesMax: "1000" });
  const [host, port] = address.split(":");
  const begun = connect(Number(port), host);
  onTestFinished(() => void begun.destroy());
  let refusal = "";
  begun.on("data", (bytes) => (refusal += String(bytes)));
  begun.write("POST /v1/admin/kick HTTP/1.1\r\nhost: h\r\ncontent-length: 1000\r\n\r\n" + "x".repeat(900));
  const post = (): Promise<Response> => fetch(`http://${address}/v1/admin/kick`, { method: "POST", body: "y".repeat(200) });
  await until(async () => (await post()).status === 401 && refusal.includes("busy"), "the first body to make room");
  expect(refusal).toMatch(/^HTTP\/1\.1 503 .*\r\nretry-after: 1\r\n.*"busy"/s);
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="bodies"}')).toBe(1);

  const tooLarge = await fetch(`http://${address}/v1/rooms/notes/edits`, { method: "POST", body: "z".repeat(1_001) });
  expect(tooLarge.status).toBe(413);
  expect(await metric(address, 'coroom_gateway_limits_reached_total{limit="body"}')).toBe(1);
});
