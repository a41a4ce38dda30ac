/**
 * The rooms that components use. Each room has one document and one provider, even if several components use it. React
 * may render a component without mounting it, mount it twice (StrictMode), or unmount it for a moment (hot reload,
 * Suspense). So a room is created by the first render, joined by the first mount, and released a second after the last
 * unmount, once its edits are saved.
 */

import {
  CoroomConnection,
  CoroomProvider as Provider,
  type AwarenessState,
  type DeviceStore,
  type Refusal,
  type StatusChange,
  type Token,
} from "@coroom/client";
import * as Y from "yjs";

/** A room from the view of components. The object stays the same while any component uses the room. */
export type OpenRoom<State extends object = AwarenessState> = {
  /** Id of the room. */
  readonly name: string;
  /** The shared document, for the binding of an editor. */
  readonly doc: Y.Doc;
  /** The provider, for its awareness and events. */
  readonly provider: Provider<State>;
};

/** What the component was given in its last render. Later rooms use the store. */
type Given = { readonly token: Token; readonly store: DeviceStore | undefined };

/**
 * `isStuck`: the document no longer follows the room, after `document-stuck` or because a component destroyed it or its
 * provider. `release`: removes the room at once.
 */
type UsedRoom = {
  readonly open: OpenRoom;
  readonly store: DeviceStore | undefined;
  readonly release: () => void;
  users: number;
  isStuck: boolean;
  timer: ReturnType<typeof setTimeout> | undefined;
};

/**
 * Rooms that no component has mounted yet. If a component above `CoroomProvider` suspends the first render, React discards
 * it, and the next one creates the room again. Until the first is released, its store holds the unsent edits of earlier pages.
 * The set belongs to no provider, because React discards that render's `UsedRooms` too. Providers with different stores do not affect each other.
 */
const unmounted = new Set<UsedRoom>();

const refusals = new WeakMap<OpenRoom["provider"], Refusal>();

/** The reason why the server refused the room. Undefined unless the provider is stopped. */
export function refusalOf(provider: OpenRoom["provider"]): Refusal | undefined {
  return provider.status === "stopped" ? refusals.get(provider) : undefined;
}

const waits = new WeakMap<OpenRoom["provider"], StatusChange>();

/** The wait for the next attempt, as it began: `retryInMs` of the provider changes with each reading. Undefined unless it waits. */
export function waitOf(provider: OpenRoom["provider"]): StatusChange | undefined {
  return provider.status === "waiting" ? waits.get(provider) : undefined;
}

/** Time for a component to mount after its first render, for example while another one suspends. */
const UNMOUNTED_MS_MAX = 60_000;
/** Time for a component to return after the last one was unmounted. */
const UNUSED_MS_MAX = 1_000;

/** Events with which a room may become saved or hopeless. */
const SETTLING = ["saved", "synced", "refused", "error"] as const;

/** On a server components are rendered and never mounted: nothing may connect, store or wait there. */
const IS_SERVER = typeof window === "undefined";

export class UsedRooms {
  readonly #url: string;
  /** Changes with each render. A text as token stays the same. */
  given: Given;
  readonly #connection: CoroomConnection;
  readonly #rooms = new Map<string, UsedRoom>();

  constructor(url: string, given: Given) {
    this.#url = url;
    this.given = given;
    this.#connection = new CoroomConnection({ url, token: this.#tokenOption() });
  }

  /** Returns the room. Creates it without connecting, so a render may call this. */
  find(name: string): OpenRoom {
    return this.#find(name).open;
  }

  /** A component that uses the room is mounted: joins the room. Returns a function for its unmount. */
  hold(name: string): () => void {
    const room = this.#find(name);
    room.users += 1;
    unmounted.delete(room);
    clearTimeout(room.timer);
    if (room.users === 1) room.open.provider.connect(); // Another component must not end the wait or the refusal of the first.
    return () => {
      room.users -= 1;
      if (room.users === 0) this.#releaseAfter(room, UNUSED_MS_MAX);
    };
  }

  /** A request to the HTTP API of the room. Throws the server's message if the answer is an error, and only its status if a proxy answered. */
  async request(name: string, path: string, options: RequestInit = {}): Promise<Response> {
    const { protocol, host, pathname } = new URL(this.#url); // Without a query, as the client connects.
    const base = `${protocol.replace("ws", "http")}//${host}${pathname.replace(/\/+$/, "")}`;
    const authorization = `Bearer ${await this.#token()}`;
    const headers = { ...(options.headers as Record<string, string>), authorization };
    const answer = await fetch(`${base}/v1/rooms/${encodeURIComponent(name)}/${path}`, { ...options, headers });
    if (answer.ok) return answer;
    const { message } = ((await answer.json().catch(() => undefined)) ?? {}) as { readonly message?: unknown };
    const why = typeof message === "string" ? `: ${message}` : "";
    throw new Error(`${options.method ?? "GET"} ${path} failed with HTTP ${answer.status}${why}`);
  }

  /** For requests of a tenant's boards, which belong to no room. */
  get server(): { readonly url: string; readonly token: Token } {
    return { url: this.#url, token: this.#tokenOption() };
  }

  /** The function of each later render replaces the one before. A text stays. */
  #tokenOption(): Token {
    return typeof this.given.token === "string" ? this.given.token : () => this.#token();
  }

  #token(): string | Promise<string> {
    const { token } = this.given;
    return typeof token === "string" ? token : token();
  }

  #find(name: string): UsedRoom {
    const known = this.#rooms.get(name);
    if (known !== undefined && !(known.isStuck && known.users === 0)) return known;
    known?.release();
    const doc = new Y.Doc();
    const store = IS_SERVER ? undefined : this.given.store;
    if (store !== undefined) for (const other of unmounted) if (other.store === store && other.open.name === name) other.release();
    const provider = new Provider({ connection: this.#connection, room: name, doc, connect: false, ...(store && { store }) });
    provider.on("refused", (refusal) => refusals.set(provider, refusal));
    provider.on("status", (change) => waits.set(provider, change));
    provider.on("error", ({ kind }) => (room.isStuck ||= kind === "document-stuck"));
    provider.awareness.on("destroy", () => (room.isStuck = true));
    const release = (): void => this.#release(room);
    const room: UsedRoom = { open: { name, doc, provider }, store, release, users: 0, isStuck: false, timer: undefined };
    this.#rooms.set(name, room);
    if (IS_SERVER) return room;
    unmounted.add(room);
    this.#releaseAfter(room, UNMOUNTED_MS_MAX);
    return room;
  }

  #releaseAfter(room: UsedRoom, delayMs: number): void {
    room.timer = setTimeout(() => this.#releaseIfSettled(room), delayMs);
  }

  /** A room with unsaved edits stays open until they are saved or never can be. Otherwise the server would never receive them. */
  #releaseIfSettled(room: UsedRoom): void {
    const { name, provider } = room.open;
    if (room.users > 0 || this.#rooms.get(name) !== room) return;
    const isHopeless = room.isStuck || provider.status === "stopped" || (provider.synced && !provider.rights.write);
    if (!provider.saved && !isHopeless) {
      const settle = (): void => {
        for (const event of SETTLING) provider.off(event, settle);
        queueMicrotask(() => this.#releaseIfSettled(room));
      };
      for (const event of SETTLING) provider.on(event, settle);
      return;
    }
    this.#release(room);
  }

  #release(room: UsedRoom): void {
    clearTimeout(room.timer);
    unmounted.delete(room);
    this.#rooms.delete(room.open.name);
    room.open.doc.destroy(); // Destroys the provider too.
    if (this.#rooms.size === 0) this.#connection.disconnect();
  }
}
