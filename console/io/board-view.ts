/**
 * Shows who is most active, live. A row belongs to a person and stays the same element, so that whoever passes
 * another is seen to move, and whose score rose lights up.
 */

import type { Board, BoardWindow, CoroomProvider } from "@coroom/client";

import { boardRemark, type Row, rowsOf, SHOWN, WINDOWS } from "../board.ts";
import { initialsOf } from "../person.ts";
import { element } from "./element.ts";
import { tagged } from "./tagged.ts";

const MOVE_MS = 420;
const EASE = "cubic-bezier(0.2, 0.8, 0.2, 1)";

export function boardView(provider: CoroomProvider, user: string): void {
  const [list, remark, choice] = [
    element("board", HTMLElement),
    element("board-remark", HTMLElement),
    element("board-windows", HTMLElement),
  ];
  const rows = new Map<string, HTMLElement>();
  let board: Board | undefined;

  const show = (shown: Board): void => {
    remark.textContent = provider.status === "stopped" ? "" : boardRemark(shown, shown.window); // Nothing is counted there any more.
    list.dataset["state"] = shown.state;
    showRows(list, rows, rowsOf(shown.ranking, user));
  };
  const choose = (window: BoardWindow): void => {
    board?.unsubscribe();
    board = provider.leaderboard.subscribe({ window, shown: SHOWN });
    board.on("change", show);
    for (const [index, button] of [...choice.children].entries()) button.ariaPressed = String(WINDOWS[index]?.window === window);
    show(board);
  };
  choice.replaceChildren(...WINDOWS.map(({ window, label }) => chooser(label, () => choose(window))));
  choose("hour");
  provider.on("status", () => board !== undefined && show(board));
}

function chooser(label: string, choose: () => void): HTMLElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", choose);
  return button;
}

/** First where everybody stands, then where they come to stand, then the way between. */
function showRows(list: HTMLElement, known: Map<string, HTMLElement>, rows: readonly Row[]): void {
  const before = new Map([...known].map(([user, row]) => [user, row.offsetTop]));
  for (const [user, row] of known) {
    if (rows.some((shown) => shown.user === user)) continue;
    known.delete(user);
    row.remove();
  }
  for (const shown of rows) {
    const row = known.get(shown.user) ?? emptyRow();
    known.set(shown.user, row);
    fill(row, shown);
    list.append(row); // In order: one that is there already moves.
  }
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  for (const [user, row] of known) move(row, before.get(user));
}

function move(row: HTMLElement, before: number | undefined): void {
  if (before === undefined) row.animate([{ opacity: 0, transform: "translateY(0.5rem)" }, {}], { duration: MOVE_MS, easing: EASE });
  else if (before !== row.offsetTop) {
    row.dataset["moved"] = before > row.offsetTop ? "up" : "down";
    row.animate([{ transform: `translateY(${before - row.offsetTop}px)` }, {}], { duration: MOVE_MS, easing: EASE });
  }
}

function emptyRow(): HTMLElement {
  const face = tagged("span", "face");
  face.ariaHidden = "true"; // The name stands beside it.
  return tagged("li", "", tagged("span", "rank"), face, tagged("span", "name"), tagged("span", "note"), tagged("span", "score"));
}

function fill(row: HTMLElement, { rank, name, colour, score, share, self }: Row): void {
  const [rankPart, face, namePart, note, scorePart] = [...row.children] as [
    HTMLElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
    HTMLElement,
  ];
  const rose = scorePart.textContent !== "" && scorePart.textContent !== score;
  row.className = `person-${colour}${self ? " self" : ""}`;
  row.style.setProperty("--share", String(share));
  rankPart.textContent = String(rank);
  face.className = `face person-${colour}`;
  face.textContent = initialsOf(name);
  namePart.textContent = name;
  note.textContent = self ? "you" : "";
  scorePart.textContent = score;
  if (rose && !matchMedia("(prefers-reduced-motion: reduce)").matches)
    scorePart.animate([{ color: "var(--accent)", transform: "scale(1.18)" }, {}], { duration: MOVE_MS, easing: EASE });
}
