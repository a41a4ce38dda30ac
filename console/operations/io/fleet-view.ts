/** Shows what it all runs on, and whether all is well. */

import { element } from "../../io/element.ts";
import { tagged } from "../../io/tagged.ts";
import type { Fleet, Gateway, RoomPage, Server, Takeover, Tone } from "../answers.ts";
import { counted, percent, shortName } from "../format.ts";
import { verdictOf } from "../health.ts";
import { leftOut } from "../left-out.ts";
import type { Reach } from "../reach.ts";
import { keyedRows, say } from "./keyed-rows.ts";

export type FleetDeeds = { readonly drainServer: (server: Server) => void; readonly drainGateway: (gateway: Gateway) => void };

const STATES: Readonly<Record<Gateway["state"], Tone>> = {
  ready: "good",
  draining: "warning",
  slow: "warning",
  degraded: "trouble",
  misconfigured: "trouble",
};
const USED_MUCH = 0.8;

export type ShowFleet = (fleet: Fleet | "not-for-you", page: RoomPage | undefined, reach: Reach, takeovers: readonly Takeover[]) => void;

export function fleetView(deeds: FleetDeeds): ShowFleet {
  const [verdict, title, facts, problems] = [
    element("verdict", HTMLElement),
    element("verdict-title", HTMLElement),
    element("verdict-facts", HTMLElement),
    element("verdict-problems", HTMLElement),
  ];
  const [environment, remark] = [element("environment", HTMLElement), element("servers-empty", HTMLElement)];
  const placement = element("placement", HTMLElement);
  const known = new Map<string, Server | Gateway>();
  const servers = keyedRows<Server>(
    element("servers", HTMLElement),
    ({ server }) => server,
    ({ server }) => processRow(server, () => deeds.drainServer(known.get(server) as Server)),
    (row, server) => {
      known.set(server.server, server);
      fillServer(row, server);
    },
  );
  const gateways = keyedRows<Gateway>(
    element("gateways", HTMLElement),
    ({ gateway }) => gateway,
    ({ gateway }) => processRow(gateway, () => deeds.drainGateway(known.get(gateway) as Gateway)),
    (row, gateway) => {
      known.set(gateway.gateway, gateway);
      fillGateway(row, gateway);
    },
  );

  return (fleet, page, reach, takeovers) => {
    const isForAll = fleet !== "not-for-you";
    for (const id of ["gateways-card", "placement-card", "verdict"]) element(id, HTMLElement).hidden = !isForAll;
    environment.hidden = !isForAll;
    if (!isForAll) {
      servers([]);
      return say(
        remark,
        "Servers are for operators: with a token you see the rooms of its tenant. A pass (coroom ops pass) shows the rest.",
      );
    }
    [environment.textContent, environment.dataset["environment"]] = [fleet.environment, fleet.environment];
    const judged = verdictOf(fleet, page, reach, takeovers);
    verdict.dataset["tone"] = judged.tone;
    say(title, judged.title);
    facts.replaceChildren(...judged.facts.map((fact) => tagged("li", "", fact)));
    problems.replaceChildren(...judged.problems.map(({ tone, text }) => toned(tagged("li", "", text), tone)));
    known.clear();
    servers(fleet.servers);
    gateways(fleet.gateways);
    say(remark, fleet.servers.length === 0 ? "None is heard." : "");
    placement.dataset["tone"] = fleet.placement.leader === undefined ? "warning" : "good";
    say(
      placement.querySelector("span")!,
      fleet.placement.leader === undefined ? "None leads" : `${shortName(fleet.placement.leader)} leads`,
    );
  };
}

export function toned<Made extends HTMLElement>(made: Made, tone: Tone): Made {
  made.dataset["tone"] = tone;
  return made;
}

/** Its name and state, facts, and the button that drains it. */
function processRow(name: string, drain: () => void): HTMLElement {
  const button = tagged("button", "quiet", "Drain…") as HTMLButtonElement;
  button.type = "button";
  button.ariaLabel = `Drain ${name}`;
  button.addEventListener("click", drain);
  const label = tagged("span", "process-name", shortName(name));
  label.title = name;
  return tagged(
    "li",
    "",
    tagged("div", "line", tagged("span", "", label, " ", tagged("span", "tag")), button),
    tagged("div", "process-facts"),
  );
}

function fillServer(row: HTMLElement, { server, rooms, draining, host, zone, pool, used, hot }: Server): void {
  const tone: Tone = draining || used > USED_MUCH ? "warning" : "good";
  fillState(row, draining ? "draining" : "ready", draining ? "warning" : "good", draining);
  const where = [host, zone, pool === "" ? "" : `pool ${pool}`].filter((part) => part !== "").join(" · ");
  say(
    row.querySelector<HTMLElement>(".process-facts")!,
    [counted(rooms, "room"), `${percent(used)} used`, where].filter((part) => part !== "").join(" · "),
  );
  const bar = row.querySelector<HTMLElement>(".used") ?? row.appendChild(tagged("div", "used"));
  bar.role = "meter";
  [bar.ariaLabel, bar.ariaValueNow] = [`Budget of ${server} in use, in percent`, String(Math.round(used * 100))];
  bar.ariaValueMin = "0";
  bar.ariaValueMax = "100";
  bar.style.setProperty("--share", String(Math.min(1, Math.max(used, 0.01))));
  toned(bar, tone);
  const hottest = hot[0];
  const why = row.querySelector<HTMLElement>(".why") ?? row.appendChild(tagged("div", "why"));
  why.hidden = hottest === undefined;
  if (hottest !== undefined) say(why, `${hottest.room} takes ${percent(hottest.share)}`);
}

function fillGateway(row: HTMLElement, { connections, rooms, shedLevel, state }: Gateway): void {
  fillState(row, state, STATES[state], state === "draining");
  say(
    row.querySelector<HTMLElement>(".process-facts")!,
    [counted(connections, "connection"), counted(rooms, "room"), ...(shedLevel === 0 ? [] : [`leaves out ${leftOut(shedLevel)}`])].join(
      " · ",
    ),
  );
}

function fillState(row: HTMLElement, state: string, tone: Tone, draining: boolean): void {
  const tag = row.querySelector<HTMLElement>(".tag")!;
  say(tag, state);
  toned(tag, tone);
  row.querySelector("button")!.hidden = draining;
}
