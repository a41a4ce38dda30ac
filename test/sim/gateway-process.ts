/**
 * One run of a gateway. It assembles the parts as `gateway/main.ts` does, on a simulated NATS connection and simulated
 * sockets, with the gateway's own NATS adapters.
 */

import { assembleGateway, type GatewayPorts } from "../../gateway/gateway.ts";
import { clientIdOf } from "../../gateway/io/client-ids.ts";
import { natsAdminCommands, natsSanctions } from "../../gateway/io/nats/nats-admin.ts";
import { natsPlacement } from "../../gateway/io/nats/nats-placement.ts";
import { applicationContents } from "../../gateway/io/http/first-content.ts";
import { bytesOf } from "../../gateway/io/http/call-services.ts";
import { documentHistoryRoutes } from "../../gateway/io/http/document-routes.ts";
import { documentWriteRoutes } from "../../gateway/io/http/document-write-routes.ts";
import { StreamedAnswers } from "../../gateway/io/http/streamed-answers.ts";
import { errorOf } from "../../gateway/http/answers.ts";
import type { HttpRoute } from "../../gateway/http/route-table.ts";
import type { SanctionsHost } from "../../gateway/limits/sanctions-host.ts";
import type { Activities, AdminCommands, BoardBus, EditHops, Tokens } from "../../gateway/ports.ts";
import type { PresenceRelayHost } from "../../gateway/presence/presence-relay-host.ts";
import type { FollowedRoomsHost } from "../../gateway/rooms/room-host.ts";
import type { WriteOutcome, WritesHost } from "../../gateway/rooms/writes-host.ts";
import type { TokenVerdict } from "../../gateway/sessions/identity.ts";
import type { SessionHost } from "../../gateway/sessions/session-host.ts";
import type { AdminCommand, Sanction } from "../../shared/bus/admin-messages.ts";
import type { SubmittedEdit } from "../../shared/bus/envelope.ts";
import { type GatewayId, type Millis, type RoomKey, roomOf } from "../../shared/ids.ts";
import type { WebhookEndpoint } from "../../shared/settings/webhook-endpoints.ts";
import type { RoomAnswer, RoomRequest } from "./history-clients.ts";
import type { PostAnswer, PostRequest } from "./keyed-writes.ts";
import { simServices } from "./sim-http.ts";
import { SimNatsConnection } from "./sim-nats-connection.ts";
import type { SimProcess } from "./sim-process.ts";
import { SimListener } from "./sim-sockets.ts";
import type { Internet } from "./tab-snapshots.ts";
import { identityOf } from "./tokens.ts";
import { UnfinishedFrames } from "./unfinished-frames.ts";
import type { World } from "./world.ts";
import { natsPresenceServers } from "../../gateway/io/nats/nats-presence.ts";
import { natsRoomOwners } from "../../gateway/io/nats/nats-rooms.ts";

const TOKEN_CHECK_MS = 1;

/** No client watches boards in a simulation. */
const NO_BOARDS: BoardBus = { follow: () => {}, unfollow: () => {}, watch: () => {}, publishNames: () => {}, leaderboards: () => 0 };
const NO_ACTIVITIES: Activities = { storeActivity: () => Promise.resolve("unavailable") };
/** No limit is reached. In a run without bans gateways exchange no sanctions, and in one without kicks no commands. */
const ALONE: Pick<GatewayPorts, "counts" | "sanctionsBus" | "storageReports" | "store" | "usageStore" | "commands"> = {
  counts: { publishReport: () => {}, onReport: () => {} },
  sanctionsBus: { publishSanction: () => {}, onSanction: () => {}, requestSanctions: () => Promise.resolve([]), onRequest: () => {} },
  storageReports: { onFull: () => {}, onPeaks: () => {} },
  store: undefined,
  usageStore: undefined,
  commands: { issueCommand: () => Promise.resolve({ kicked: 0, members: [], gateways: 0, silentGateways: [] }), onCommand: () => {} },
};

const APPLICATION: readonly WebhookEndpoint[] = [{ name: "all-tenants", tenant: undefined, url: "http://application" }];
const NOTHING_FULL = { fullOn: () => undefined };
const STREAMS = { eachMax: 100, allMax: 1_000 };
const WRITE_OPTIONS = { internalSecret: "", eachUser: { burst: 100, perSecond: 100 }, writersMax: 100, editBytesMax: 400 };

export class GatewayProcess {
  readonly process: SimProcess;
  readonly connection: SimNatsConnection;
  /** The separate connection for presence. */
  readonly presenceConnection: SimNatsConnection;
  readonly listener: SimListener;
  readonly #clients: SessionHost;
  readonly #rooms: FollowedRoomsHost;
  readonly #presence: PresenceRelayHost;
  readonly #writes: WritesHost;
  readonly #routes: readonly HttpRoute[];
  readonly #sanctions: SanctionsHost;
  readonly #commands: AdminCommands;
  #isStarted = false;
  #stopping = false;

  /** Calls `exited` if the gateway exits by itself because its start fails. */
  constructor(world: World, { documentServices }: Pick<Internet, "documentServices">, name: string, exited: () => void) {
    this.process = world.process(name);
    this.connection = new SimNatsConnection(this.process, world.nats, world.scheduler, world.latencyMs);
    this.presenceConnection = this.connection.addCompanion();
    this.listener = new SimListener(this.process, world.scheduler, world.latencyMs);
    const { clock } = this.process;
    const { gateway: config, placement: placementConfig } = world.settings;
    const gateway = name as GatewayId;
    const endOfTurn = (run: () => void): void => void clock.after(0, run);
    const deps = {
      clock,
      endOfTurn,
      log: world.logOf(name),
      metrics: world.telemetry.gateway,
      hops: this.#hopsTo(world),
    };
    const bus = natsRoomOwners(this.connection.nats, world.subjects, gateway, {
      ...deps,
      lastOfTurn: endOfTurn,
      localOwners: world.localOwners,
    });
    const presenceBus = natsPresenceServers(this.presenceConnection.nats, world.subjects, gateway, deps);
    const placement = natsPlacement(this.connection.nats, world.subjects, placementConfig, clock);
    const { topics } = this.listener;
    const unfinished = new UnfinishedFrames(world.judge, name, config.partialBytesMax);
    const watched = unfinished.watchSockets(this.listener.sockets);
    const sockets = world.planted?.gatewaySockets?.(watched) ?? watched;

    const rooms = world.planted?.gatewayRooms?.(bus.rooms) ?? bus.rooms;
    const sanctions = natsSanctions(this.connection.nats, world.subjects, gateway);
    const commands = natsAdminCommands(this.connection.nats, world.subjects, { gateway, running: () => [] });
    this.#commands = world.kickedUsers === undefined ? ALONE.commands : (world.planted?.adminCommands?.(commands) ?? commands);
    const documents = simServices(this.process, world, documentServices);
    const given = world.application && applicationContents(documents, { ...config, firstContentUrls: APPLICATION }, deps);
    const ports = {
      sockets,
      topics,
      boardBus: NO_BOARDS,
      activities: NO_ACTIVITIES,
      tokens: this.#tokens(world),
      rooms,
      presence: world.planted?.gatewayPresence?.(presenceBus.servers) ?? presenceBus.servers,
      placement,
      applicationContents: given && (world.planted?.applicationContents?.(given) ?? given),
      ...ALONE,
      ...(world.bans === undefined ? {} : { sanctionsBus: world.planted?.sanctionsBus?.(sanctions) ?? sanctions }),
      commands: this.#commands,
      clientIdOf,
    };
    const parts = assembleGateway(gateway, config, ports, deps);
    this.#sanctions = parts.sanctions;
    [this.#rooms, this.#presence, this.#clients, this.#writes] = [parts.rooms, parts.presence, parts.clients, parts.writes];
    const ofRoutes = { ...ports, ...parts, documents, storage: NOTHING_FULL, streamed: new StreamedAnswers(STREAMS, deps.metrics) };
    const random = world.chance(`keys of ${name}`);
    const randomKey = (): string => `${name}-${random.unit()}`;
    this.#routes = [
      ...documentWriteRoutes(ofRoutes, WRITE_OPTIONS, { ...deps, randomKey }),
      ...documentHistoryRoutes(ofRoutes, { ...WRITE_OPTIONS, readersMax: WRITE_OPTIONS.writersMax }, deps),
    ];
    this.listener.isReady = () => !this.#stopping && this.#rooms.backbone.isUp;
    void Promise.all([bus.start(this.#rooms), presenceBus.start(this.#presence)]).then(
      () => {
        this.#presence.start();
        this.#clients.start();
        if (world.bans !== undefined) parts.sanctions.start((sanction) => parts.discipline.receiveChanged(sanction));
        this.#commands.onCommand((command) => parts.discipline.receiveCommand(command));
        this.listener.start(unfinished.watchClients(world.planted?.gatewayClients?.(parts.clients) ?? parts.clients));
        this.#isStarted = true;
      },
      () => this.#exit(exited),
    );
  }

  /** Whether the gateway accepts HTTP requests. */
  get isUp(): boolean {
    return this.#isStarted && !this.#stopping;
  }

  /** As `POST /v1/admin/ban`. */
  ban(sanction: Sanction): void {
    this.#sanctions.impose(sanction);
  }

  /** As the routes of administrators, for example `POST /v1/admin/kick`. */
  command(command: AdminCommand): Promise<{ readonly kicked: number; readonly gateways: number }> {
    return this.#commands.issueCommand(command);
  }

  /** A ban by people. */
  knowsBanOf(user: string): boolean {
    return this.#sanctions.all.some(({ target, by }) => by === undefined && target.kind === "user" && target.user === user);
  }

  /** Writes an edit as the HTTP routes do. */
  write(room: RoomKey, edit: SubmittedEdit): Promise<WriteOutcome> {
    return this.#writes.write(room, edit);
  }

  /** `POST …/edits`. */
  post(place: "edits", room: RoomKey, request: PostRequest): Promise<PostAnswer> {
    return this.request("post", place, room, request);
  }

  /** A request about a room, answered by its route. `place`: the path after the room. */
  async request(method: HttpRoute["method"], place: string, room: RoomKey, request: RoomRequest): Promise<RoomAnswer> {
    const { user, key = "", query = {}, body = new Uint8Array(0) } = request;
    const headers: Record<string, string> = {
      "authorization": `Bearer ${user}`,
      "content-type": "application/octet-stream",
      "idempotency-key": key,
    };
    const route = this.#routes.find((one) => one.method === method && one.path.endsWith(`/${place}`))!;
    const answer = await route.answer({
      path: "",
      parameters: [roomOf(room)],
      query: new URLSearchParams(query),
      header: (name) => headers[name] ?? "",
      address: undefined,
      body,
      signal: new AbortController().signal,
    });
    const bytes = answer.body === undefined ? new Uint8Array(0) : await bytesOf(answer.body);
    const error = answer.status < 400 ? undefined : errorOf(bytes);
    const { "x-coroom-seq": seq = "0", "x-coroom-epoch": epoch = "0" } = answer.headers ?? {};
    return { status: answer.status, error, seq: Number(seq), epoch: Number(epoch), body: bytes };
  }

  /** Exits as `gateway/main.ts` does if the NATS connection fails during the start. */
  #exit(exited: () => void): void {
    if (this.process.state === "dead") return; // The cluster stopped it, and replaces it.
    this.process.die();
    this.connection.end();
    exited();
  }

  /** An orderly shutdown: the gateway asks clients to reconnect elsewhere, and sends the edits that are under way. */
  stop(): void {
    this.#stopping = true;
    this.#clients.stop();
    this.#sanctions.stop();
    this.#rooms.stop();
    this.#presence.stop();
    const end = (): void => {
      this.process.die();
      this.listener.end(true);
      this.connection.end();
    };
    void this.connection.flush().then(end, end);
  }

  #tokens({ tokens, planted }: World): Tokens {
    const verdictOn = (token: string): TokenVerdict =>
      tokens !== undefined && token.includes(".")
        ? tokens.verify(token, this.process)
        : { kind: "valid", identity: identityOf(token, "write", (this.process.clock.now() + 1e9) as Millis) };
    const real: Tokens = {
      verify: (token) => new Promise((resolve) => void this.process.clock.after(TOKEN_CHECK_MS, () => resolve(verdictOn(token)))),
    };
    return planted?.tokens?.(real) ?? real;
  }

  /** Passes the edits that the gateway takes to the check of tokens. */
  #hopsTo({ tokens }: World): EditHops | undefined {
    if (tokens === undefined) return undefined;
    return {
      received: (_room, edit) => tokens.receiveTaken(this.process, edit),
      forwarded: () => {},
      answered: () => {},
      committed: () => {},
      delivering: (_room, _batch, deliver) => deliver(),
    };
  }
}
