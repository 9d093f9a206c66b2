import { lineText, type Sink, terminalOf } from './terminal.ts';

type Out = Sink & Pick<NodeJS.WriteStream, 'write'>;

/** Milliseconds between two updates of the bar, and between two plain lines: shorter work prints nothing. */
const BAR_INTERVAL_MILLISECONDS = 50;
const PLAIN_INTERVAL_MILLISECONDS = 10_000;
const BAR = 30;

/** Shows progress on standard error: a bar on a terminal, a plain line at intervals elsewhere. */
export function createProgress(out: Out = process.stderr, now: () => number = () => performance.now()) {
  const isBar = out.isTTY === true;
  const { width } = terminalOf(out);
  let last = isBar ? Number.NEGATIVE_INFINITY : now();
  let drawn = false;
  return {
    /** @param done from 0 to 1 */
    update(done: number, text: string) {
      if (now() - last < (isBar ? BAR_INTERVAL_MILLISECONDS : PLAIN_INTERVAL_MILLISECONDS)) return;
      last = now();
      drawn = true;
      const share = Math.min(1, Math.max(0, done));
      const full = Math.round(share * BAR);
      const bar = `${'█'.repeat(full)}${'░'.repeat(BAR - full)} ${lineText(text)}`;
      const plain = `${String(Math.floor(share * 100)).padStart(3)} %  ${lineText(text)}\n`;
      out.write(isBar ? `\r\x1b[K${bar.slice(0, Math.max(0, width - 1))}` : plain);
    },
    /** Removes the bar. Plain lines stay. */
    end() {
      if (drawn && isBar) out.write('\r\x1b[K');
    },
  };
}
