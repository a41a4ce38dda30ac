/**
 * Shows the most active people, live or of the week that ended. Each person keeps the same row element, so that a change of rank is animated and
 * a higher score is highlighted.
 */

import type { CoroomProvider } from "@coroom/client";
import { leaderboardOf } from "@coroom/client/leaderboard";

import { boardRemark, type BoardRow, BOARD_ROWS_MAX, isPast, rowsOf, type ShownBoard, type ShownWindow, WINDOWS } from "../board.ts";
import { initialsOf } from "../person.ts";
import { element, nameOf, tagged } from "./element.ts";

const LOADING: ShownBoard = { state: "waiting", ranking: [], own: undefined, members: 0 };
/** Interval of readings of a window that has ended: its last edits may be counted late, and the next window takes its place. */
const READ_AGAIN_MS = 60_000;
const MOVE_MS = 420;
const EASE = "cubic-bezier(0.2, 0.8, 0.2, 1)";

export function boardView(provider: CoroomProvider, user: string): void {
  const [list, remark, choice] = [
    element("board", HTMLElement),
    element("board-remark", HTMLElement),
    element("board-windows", HTMLElement),
  ];
  const rows = new Map<string, HTMLElement>();
  let chosen: ShownWindow = "hour";
  let board: ShownBoard = LOADING;
  let leave = (): void => {};

  const showBoard = (): void => {
    remark.textContent = provider.status === "stopped" ? "" : boardRemark(board, chosen); // A stopped connection has no leaderboard.
    list.dataset["state"] = board.state;
    showRows(list, rows, rowsOf(board.ranking, user));
  };
  const choose = (window: ShownWindow): void => {
    leave();
    chosen = window;
    board = LOADING;
    leave = open(provider, window, (shown) => {
      board = shown;
      showBoard();
    });
    for (const [index, button] of [...choice.children].entries()) button.ariaPressed = String(WINDOWS[index]?.window === window);
    showBoard();
  };
  choice.replaceChildren(...WINDOWS.map(({ window, label }) => chooser(label, () => choose(window))));
  choose(chosen);
  provider.on("status", showBoard);
}

/** Shows the board of a window until the returned function is called. */
function open(provider: CoroomProvider, window: ShownWindow, show: (board: ShownBoard) => void): () => void {
  const options = { window, shown: BOARD_ROWS_MAX };
  if (!isPast(window)) {
    const board = leaderboardOf(provider).subscribe({ ...options, window });
    board.on("change", show);
    return () => board.unsubscribe();
  }
  let isLeft = false;
  let isRead = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const read = async (): Promise<void> => {
    const reading = await leaderboardOf(provider)
      .read(options)
      .catch((error: unknown) => void console.warn(error));
    if (isLeft) return;
    if (reading !== undefined) show({ ...reading, state: "read" });
    else if (!isRead) show({ ...LOADING, state: "unread" });
    isRead ||= reading !== undefined;
    timer = setTimeout(() => void read(), READ_AGAIN_MS);
  };
  void read();
  return () => {
    isLeft = true;
    clearTimeout(timer);
  };
}

function chooser(label: string, choose: () => void): HTMLElement {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = label;
  button.addEventListener("click", choose);
  return button;
}

/** Measures the old positions first, then reorders the rows, then animates from old to new. */
function showRows(list: HTMLElement, known: Map<string, HTMLElement>, rows: readonly BoardRow[]): void {
  const before = new Map([...known].map(([user, row]) => [user, row.offsetTop]));
  for (const [user, row] of known) {
    if (rows.some((shown) => shown.user === user)) continue;
    known.delete(user);
    row.remove();
  }
  for (const [index, shown] of rows.entries()) {
    const row = known.get(shown.user) ?? emptyRow();
    known.set(shown.user, row);
    fill(row, shown);
    if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null); // A row that moves loses its selected text.
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
  face.ariaHidden = "true"; // The name is next to the face.
  return tagged("li", "", tagged("span", "rank"), face, nameOf(""), tagged("span", "note"), tagged("span", "score"));
}

function fill(row: HTMLElement, { rank, name, colour, score, share, self }: BoardRow): void {
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
  if (namePart.textContent !== name) namePart.textContent = name;
  note.textContent = self ? "you" : "";
  scorePart.textContent = score;
  if (rose && !matchMedia("(prefers-reduced-motion: reduce)").matches)
    scorePart.animate([{ color: "var(--accent)", transform: "scale(1.18)" }, {}], { duration: MOVE_MS, easing: EASE });
}
