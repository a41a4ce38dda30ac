/** Puts one question to a server over TCP: the plainest proof that it is up and answering. */
import { connect } from "node:net";

export type Question = { readonly host: string; readonly port: number; readonly say: string; readonly msMax: number };

/** True once what was heard satisfies `enough`; false if the server refuses, hangs up or stays silent. */
export function ask(question: Question, enough: (heard: string) => boolean): Promise<boolean> {
  return new Promise((resolve) => {
    let heard = "";
    const socket = connect(question.port, question.host, () => socket.write(question.say));
    const end = (answer: boolean): void => {
      clearTimeout(timer);
      socket.destroy();
      resolve(answer);
    };
    const timer = setTimeout(end, question.msMax, false);
    socket.on("data", (bytes) => {
      heard += bytes.toString("latin1");
      if (enough(heard)) end(true);
    });
    socket.on("error", () => end(false));
    socket.on("close", () => end(false));
  });
}
