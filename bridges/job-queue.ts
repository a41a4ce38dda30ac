/**
 * Runs jobs one after the other, although some of them wait for a thread: the next job starts once the job before it has
 * called `done`. So an update that is checked in a thread is never overtaken by a later one.
 */

type Job = (done: () => void) => void;

export class JobQueue {
  #waiting: Job[] = [];
  #isBusy = false;
  #isLooping = false;

  add(job: Job): void {
    this.#waiting.push(job);
    this.#runWaiting();
  }

  /** Forgets jobs that have not started. */
  clear(): void {
    this.#waiting = [];
  }

  /** A job that is done at once must not make the stack grow. */
  #runWaiting(): void {
    if (this.#isLooping) return;
    this.#isLooping = true;
    while (!this.#isBusy && this.#waiting.length > 0) {
      this.#isBusy = true;
      this.#waiting.shift()!(() => {
        this.#isBusy = false;
        this.#runWaiting();
      });
    }
    this.#isLooping = false;
  }
}
