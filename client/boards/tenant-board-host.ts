/** A tenant's ranking of people or rooms, requested over HTTP as `tenant-polls.ts` decides. */

import { assert } from "../../shared/assert.ts";
import type { BoardPlace, BoardRole } from "../../shared/wire/boards.ts";
import { askToken, assertToken, type Token } from "../connection/token-host.ts";
import { WakeTimer } from "../connection/turns.ts";
import * as defaults from "../defaults.ts";
import { Events } from "../events.ts";
import { assertBoard, assertOptions, serverAddressOf } from "../options.ts";
import type { ClientWorld, FetchJson, WatchVisibility } from "../ports.ts";
import type { BoardReadOptions } from "./board-reads-host.ts";
import { type RankedUser, rankedUsers } from "./room-boards.ts";
import { type TenantBoardFacts, type TenantBoardState, type TenantPollEffect, type TenantPollInput, TenantPolls } from "./tenant-polls.ts";

/** One place of a tenant's ranking of rooms. Among equal points, the room that reached them first is ahead. */
export type RankedRoom = {
  /** 1, 2, 3, … in order. */
  readonly rank: number;
  /** Id of the room. */
  readonly room: string;
  /** Points of all people in the room, a whole number. */
  readonly points: number;
};

/** The places of each ranking of a tenant: its people by their points in all rooms, and its rooms by the points of all people. */
export type TenantRankings = {
  /** A place of a person. */
  readonly people: RankedUser;
  /** A place of a room. */
  readonly rooms: RankedRoom;
};

/** Which ranking of the tenant to show, and how much of it. `Ranks`: `people` or `rooms`. */
export type TenantBoardOptions<Ranks extends keyof TenantRankings = keyof TenantRankings> = {
  /** URL of the server: `wss://host`, `ws://host:port`, `https:` or `http:`. A path is kept. */
  readonly url: string;
  /**
   * A JWT whose claim `rights` contains `boards`, or `admin` with the rooms `*`, or a function that returns one. It is
   * called again after the token has expired.
   */
  readonly token: Token;
  /** `people`: by their points in all rooms. `rooms`: by the points of all people. */
  readonly board: Ranks;
  /** A current window, `all`, one that has ended such as `last-week`, or an id such as `2026-W27`. Default: `all`. */
  readonly window?: BoardReadOptions["window"] | undefined;
  /** Default: `everyone`. */
  readonly role?: BoardRole | undefined;
  /** Number of places, from 1 to the server's maximum, which is 100 unless its operator changed it. Default: 10. */
  readonly shown?: number | undefined;
};

/** Events of a `WatchedTenantBoard`, with the arguments of each listener. */
export type TenantBoardEvents<Ranks extends keyof TenantRankings = keyof TenantRankings> = {
  /** Anything changed. */
  change: [WatchedTenantBoard<Ranks>];
};

/** @internal The ports of a watched board. */
type TenantBoardWorld = Pick<ClientWorld, "clock" | "chance" | "reportError" | "watchNetwork"> & {
  readonly fetchJson: FetchJson;
  readonly watchVisibility: WatchVisibility;
};

const SHOWN_DEFAULT = 10;
const NOT_REACHED =
  "cannot read the board: the server does not answer. Check the network, and that COROOM_ALLOWED_ORIGINS includes the page's origin";

/** A tenant's ranking, as last received. `watchTenantBoard` returns it. `Ranks`: `people` or `rooms`. */
export class WatchedTenantBoard<Ranks extends keyof TenantRankings = keyof TenantRankings> {
  /** Whom the board ranks: `people` or `rooms`. */
  readonly board: Ranks;
  /** The window that was asked for. */
  readonly window: BoardReadOptions["window"];
  /** The users whose points count. */
  readonly role: BoardRole;
  /** Number of places that were asked for. */
  readonly shown: number;
  readonly #token: Token;
  readonly #url: string;
  readonly #world: TenantBoardWorld;
  readonly #events: Events<TenantBoardEvents<Ranks>>;
  readonly #polls: TenantPolls;
  readonly #alarm: WakeTimer;
  readonly #endWatches: readonly (() => void)[];
  #facts: TenantBoardFacts = { state: "waiting", page: undefined, error: undefined };
  #ranking: readonly TenantRankings[Ranks][] = [];
  #emitted = "";
  #bearer = "";
  #isStopped = false;

  /** @internal Use `watchTenantBoard`. */
  constructor(options: TenantBoardOptions<Ranks>, world: TenantBoardWorld) {
    assertOptions(options, "url, token and board");
    const { url, token, board, window = "all", role = "everyone", shown = SHOWN_DEFAULT } = options;
    assertToken(token);
    assert(board === "people" || board === "rooms", "board must be people or rooms: the ranking of the tenant to show");
    assertBoard(window, role, shown);
    const query = new URLSearchParams({ window, role, limit: String(shown) });
    this.#url = `${serverAddressOf(url).http}/v1/leaderboard/${board}?${query}`;
    [this.board, this.window, this.role, this.shown, this.#token, this.#world] = [board, window, role, shown, token, world];
    this.#events = new Events(world.reportError);
    const poll = { ...defaults.TENANT_BOARD, tokenIsFixed: typeof token === "string" };
    this.#polls = new TenantPolls(poll, () => world.chance.unit(), world.clock.now());
    this.#alarm = new WakeTimer(world.clock, () => this.#receiveInput({ kind: "tick" }));
    this.#endWatches = [
      world.watchVisibility((isVisible) => this.#receiveInput({ kind: "visibility", isVisible })),
      world.watchNetwork?.((change) => change === "back" && this.#receiveInput({ kind: "network-back" })) ?? (() => {}),
    ];
    this.#receiveInput({ kind: "tick" });
  }

  /**
   * `waiting`: no answer yet. `live`: up to date. `behind`: the board shows earlier scores, because the server does not
   * count at the moment or the last request failed. `unavailable`: nothing could be read yet; the client tries again.
   * `stopped`: the server refused, and the client does not try again; see `error`.
   */
  get state(): TenantBoardState {
    return this.#facts.state;
  }

  /** Why the last request failed: the server's message. Undefined if it succeeded. */
  get error(): Error | undefined {
    return this.#facts.error;
  }

  /** Id of the window, for example `2026-07-01T12`. Empty until known, and if nothing was counted in the window. */
  get windowId(): string {
    return this.#facts.page?.window.id ?? "";
  }

  /** Number of people, or of rooms, with points. */
  get members(): number {
    const { page } = this.#facts;
    return (this.board === "people" ? page?.members : page?.rooms) ?? 0;
  }

  /** Points of all of them together. */
  get points(): number {
    return this.#facts.page?.points ?? 0;
  }

  /** The first places, at most `shown`. */
  get ranking(): readonly TenantRankings[Ranks][] {
    return this.#ranking;
  }

  /** Calls the listener at each event of this name. {@link TenantBoardEvents} lists names and arguments. */
  on<Name extends keyof TenantBoardEvents>(name: Name, listener: (...args: TenantBoardEvents<Ranks>[Name]) => void): void {
    this.#events.on(name, listener);
  }

  /** Calls the listener at the next event of this name, once. */
  once<Name extends keyof TenantBoardEvents>(name: Name, listener: (...args: TenantBoardEvents<Ranks>[Name]) => void): void {
    this.#events.once(name, listener);
  }

  /** Removes the listener. Without effect if it was not added. */
  off<Name extends keyof TenantBoardEvents>(name: Name, listener: (...args: TenantBoardEvents<Ranks>[Name]) => void): void {
    this.#events.off(name, listener);
  }

  /** Ends the requests: no event is emitted any more. */
  stop(): void {
    this.#isStopped = true;
    this.#events.clear();
    this.#alarm.setFor(undefined);
    for (const end of this.#endWatches) end();
  }

  #receiveInput(input: TenantPollInput): void {
    if (this.#isStopped) return;
    for (const effect of this.#polls.receiveInput(input, this.#world.clock.now())) {
      if (effect.kind === "ask") void this.#ask(effect).then((answered) => this.#receiveInput(answered));
      else this.#show(effect.facts);
    }
    if (!this.#isStopped) this.#alarm.setFor(this.#polls.dueAt);
  }

  async #ask({ token, etag }: TenantPollEffect & { kind: "ask" }): Promise<TenantPollInput> {
    if (token === "new") {
      const error = await this.#renewToken();
      if (error !== undefined) return { kind: "no-answer", error };
    }
    if (this.#isStopped) return { kind: "tick" };
    try {
      return { kind: "answer", answer: await this.#world.fetchJson(this.#url, this.#bearer, etag) };
    } catch (cause) {
      return { kind: "no-answer", error: new Error(NOT_REACHED, { cause }) }; // Any network error. Browsers do not give the reason.
    }
  }

  async #renewToken(): Promise<Error | undefined> {
    const { clock } = this.#world;
    let endWait = (): void => {};
    const late = new Promise<never>((_, reject) => {
      endWait = clock.after(defaults.TOKEN_MS_MAX, () => reject(new Error(`took longer than ${defaults.TOKEN_MS_MAX / 1000} s`)));
    });
    const answer = await askToken(this.#token, late);
    endWait();
    if (answer.kind === "token-failed")
      return new Error(`cannot read the board: the application's token function ${answer.how}; it is called again later`, {
        cause: answer.cause,
      });
    this.#bearer = answer.token;
    return undefined;
  }

  #show(facts: TenantBoardFacts): void {
    const ranking = this.#rankingOf(facts);
    this.#facts = facts;
    const shownNow = JSON.stringify([facts.state, facts.error?.message, this.windowId, this.members, this.points, ranking]);
    if (shownNow === this.#emitted) return;
    this.#emitted = shownNow;
    this.#ranking = ranking;
    this.#events.emit("change", this);
  }

  #rankingOf({ page }: TenantBoardFacts): readonly TenantRankings[Ranks][] {
    const places = page?.ranking ?? [];
    return (
      this.board === "people" ? rankedUsers(places as readonly BoardPlace[], this.shown) : places
    ) as readonly TenantRankings[Ranks][];
  }
}
