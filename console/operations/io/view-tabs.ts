/** The tabs of the page, as links to addresses of the page. */

import { element, tagged } from "../../io/element.ts";
import { type ConsoleAddress, consoleAddress, type ConsoleTab, TABS } from "../console-address.ts";

const LABELS: Readonly<Record<ConsoleTab, string>> = { overview: "Overview", charts: "Charts", events: "Events" };

/** Charts are shown to operators only. */
export function viewTabs(): (address: ConsoleAddress, isOperator: boolean) => void {
  const [operations, charts] = [element("operations", HTMLElement), element("charts", HTMLElement)];
  const links = TABS.map((tab) => ({ tab, link: tagged("a", "", LABELS[tab]) as HTMLAnchorElement }));
  element("views", HTMLElement).replaceChildren(...links.map(({ link }) => link));
  return (address, isOperator) => {
    const shown = address.tab === "charts" && !isOperator ? "overview" : address.tab;
    operations.dataset["tab"] = shown;
    charts.hidden = shown !== "charts";
    for (const { tab, link } of links) {
      link.href = consoleAddress({ ...address, tab, room: undefined }) || "#";
      link.ariaCurrent = tab === shown ? "page" : "false";
      link.hidden = tab === "charts" && !isOperator;
    }
  };
}
