import { type Sink, terminalOf } from './terminal.ts';

/** Shows how far something has come; only on a terminal, and never into what is printed. */
export interface Progress {
  /** @param done from 0 to 1 */
  update(done: number, text: string): void;
  /** Takes the bar away. */
  end(): void;
}

type Out = Sink & Pick<NodeJS.WriteStream, 'write'>;

/** Milliseconds between two drawings. */
const PACE = 50;
const BAR = 30;

export function createProgress(out: Out = process.stderr, now: () => number = () => performance.now()): Progress {
  if (out.isTTY !== true) return { update: () => {}, end: () => {} };
  const { width } = terminalOf(out);
  let last = Number.NEGATIVE_INFINITY;
  let drawn = false;
  return {
    update(done, text) {
      if (now() - last < PACE) return;
      last = now();
      drawn = true;
      const full = Math.round(Math.min(1, Math.max(0, done)) * BAR);
      const bar = `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${text}`;
      out.write(`\r\x1b[K${bar.slice(0, Math.max(0, width - 1))}`);
    },
    end() {
      if (drawn) out.write('\r\x1b[K');
    },
  };
}
