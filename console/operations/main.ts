/**
 * Entry point of the operations console: polls the gateway every two seconds while the page is visible, and shows the
 * answers.
 */

import { element } from "../io/element.ts";
import type { ListedBan, EventsAnswer, FleetAnswer, ListedMember, RoomDetails, RoomName, RoomPageAnswer } from "./answers.ts";
import * as actions from "./actions.ts";
import { addEvents, NO_EVENTS } from "./event-rows.ts";
import { type AdminApi, type AdminResponse, adminApi } from "./io/admin-api.ts";
import { bansView } from "./io/bans-view.ts";
import { confirmDialog } from "./io/confirm.ts";
import { eventsView } from "./io/events-view.ts";
import { fleetView } from "./io/fleet-view.ts";
import { setText } from "./io/keyed-rows.ts";
import { roomView } from "./io/room-view.ts";
import { roomsView } from "./io/rooms-view.ts";
import { forgetPass, keptPass, signInView } from "./io/sign-in-view.ts";
import { nextPollState, FIRST_POLL, nextPollMs, type PollOutcome, type PollState, pollRemark, mergeFleet } from "./polling.ts";

/** Bans are many and change rarely: requested in every fifth round. */
const ROUNDS_PER_BANS = 5;

let request: AdminApi = adminApi("");
let poll: PollState = FIRST_POLL;
let events = NO_EVENTS;
let fleet: FleetAnswer | undefined;
let page: RoomPageAnswer | undefined;
/** Until an answer proves otherwise. */
let isOperator = true;
let rounds = 0;
/** Timer of the next round. `turn` identifies the current round: answers of an older round are ignored. */
let next: ReturnType<typeof setTimeout> | undefined;
let turn = 0;

const confirm = confirmDialog();
const perform = (plan: actions.PlannedAction): void =>
  confirm({ ...plan, act: () => request<Readonly<Record<string, unknown>>>(plan.path, plan.body).finally(pollNow) });
const acceptingServers = (): number => (fleet?.servers ?? []).filter(({ draining }) => !draining).length;
const showEvents = eventsView();
const showBans = bansView((ban) => perform(actions.planLift(ban)));
const room = roomView({
  move: (...given) => perform(actions.planMove(...given)),
  kick: (...given) => perform(actions.planKick(...given)),
  makeReadOnly: (...given) => perform(actions.planReadOnly(...given)),
});
const showFleet = fleetView({
  drainServer: (server) => perform(actions.planServerDrain(server, acceptingServers() - 1)),
  drainGateway: (gateway) =>
    perform(
      actions.planGatewayDrain(
        gateway,
        (fleet?.gateways ?? []).filter(({ gateway: other, state }) => other !== gateway.gateway && state === "ready").length,
      ),
    ),
});
const openRoom = (name: RoomName): void => {
  room.begin(name);
  pollNow();
};
const rooms = roomsView(openRoom, pollNow);
const showSignIn = signInView(signIn);

element("sign-out", HTMLButtonElement).addEventListener("click", () => signOut(""));
document.addEventListener("visibilitychange", () => document.hidden || pollNow());
const kept = keptPass();
if (kept === undefined) showSignIn("");
else signIn(kept);

function signIn(pass: string): void {
  [request, poll, events, fleet, page, isOperator, rounds] = [adminApi(pass), FIRST_POLL, NO_EVENTS, undefined, undefined, true, 0];
  for (const id of ["operations", "sign-out", "reach"]) element(id, HTMLElement).hidden = false;
  showPollState();
  pollNow();
}

function signOut(problem: string): void {
  turn += 1;
  clearTimeout(next);
  forgetPass();
  for (const id of ["operations", "sign-out", "reach", "environment"]) element(id, HTMLElement).hidden = true;
  for (const id of ["room", "confirm"]) element(id, HTMLDialogElement).close();
  showSignIn(problem);
}

function pollNow(): void {
  clearTimeout(next);
  void round(++turn);
}

/** A hidden page sends no requests. Each answer is shown as soon as it arrives. */
async function round(of: number): Promise<void> {
  if (document.hidden || element("operations", HTMLElement).hidden) return;
  const [roomsResponse, fleetResponse, eventsResponse] = await Promise.all([
    receiveAnswer(of, request<RoomPageAnswer>(`/rooms?${rooms.query()}`), (body) => (page = body)),
    receiveAnswer(of, request<FleetAnswer>("/fleet"), (body) => (fleet = mergeFleet(fleet, body))),
    receiveAnswer(of, request<EventsAnswer>(`/events?after=${events.last}`), (body) => (events = addEvents(events, body))),
  ]);
  const bansResponse = rounds % ROUNDS_PER_BANS === 0 ? await request<{ sanctions: readonly ListedBan[] }>("/bans") : undefined;
  if (of !== turn) return;
  if (roomsResponse.kind === "refused" && [401, 403].includes(roomsResponse.status)) return signOut(roomsResponse.message);
  isOperator = !(fleetResponse.kind === "refused" && fleetResponse.error === "not-an-operator");
  if (bansResponse?.kind === "answered") showBans(bansResponse.body.sanctions);
  await showOpenRoom(of);
  if (of !== turn) return;
  rounds += 1;
  const outcome = outcomeOf([roomsResponse, ...(isOperator ? [fleetResponse] : []), eventsResponse]);
  poll = nextPollState(poll, outcome, new Date());
  show();
  next = setTimeout(pollNow, nextPollMs(poll, outcome));
}

async function receiveAnswer<Body>(
  of: number,
  asking: Promise<AdminResponse<Body>>,
  take: (body: Body) => void,
): Promise<AdminResponse<Body>> {
  const response = await asking;
  if (of !== turn || response.kind !== "answered") return response;
  take(response.body);
  show();
  return response;
}

function show(): void {
  if (page !== undefined) rooms.show(page, !isOperator);
  if (!isOperator) showFleet("not-for-you", page, poll, []);
  else if (fleet !== undefined) showFleet(fleet, page, poll, events.takeovers);
  showEvents(events);
  showPollState();
}

async function showOpenRoom(of: number): Promise<void> {
  const open = room.open();
  if (open === undefined) return;
  const [place, tenant] = [`/rooms/${encodeURIComponent(open.room)}`, `?${new URLSearchParams({ tenant: open.tenant })}`];
  const [response, members] = await Promise.all([
    request<RoomDetails>(`${place}${tenant}`),
    request<{ members: readonly ListedMember[] }>(`${place}/members${tenant}`),
  ]);
  if (of !== turn || room.open() !== open) return;
  if (response.kind === "answered") room.show(response.body, members.kind === "answered" ? members.body.members : undefined, fleet);
  else if (response.kind === "refused" && response.error === "not-open") room.show("gone", undefined, fleet);
}

/**
 * Returns the worst outcome. A rejected request counts as answered: a gateway without NATS rejects requests about
 * rooms.
 */
function outcomeOf(responses: readonly AdminResponse<unknown>[]): PollOutcome {
  const tooFast = responses.find((each) => each.kind === "too-fast");
  if (tooFast !== undefined) return tooFast;
  const isLost = responses.some((each) => each.kind === "unreachable");
  return { kind: isLost ? "unreachable" : "answered" };
}

function showPollState(): void {
  const { tone, text } = pollRemark(poll);
  const place = element("reach", HTMLElement);
  place.dataset["tone"] = tone;
  setText(place.querySelector("span")!, text);
  element("operations", HTMLElement).toggleAttribute("data-old", poll.state === "lost" || fleet?.reachesNats === false);
}
