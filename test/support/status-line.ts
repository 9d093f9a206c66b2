export interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const CLEAR = '\r\u001b[K';

/**
 * Shows the progress of a long run: one line that is overwritten on a terminal, a line at intervals elsewhere.
 * @param every outside of a terminal, one of this many statuses is printed
 */
export function createStatusLine(out: Terminal, every = 20) {
  let last = '';
  let count = 0;
  const show = () => out.write(CLEAR + last.slice(0, (out.columns ?? 80) - 1));
  return {
    line(text: string) {
      out.write(out.isTTY ? `${CLEAR}${text}\n` : `${text}\n`);
      if (out.isTTY && last !== '') show();
    },
    status(text: string) {
      last = text;
      if (out.isTTY) show();
      else if (++count % every === 0) out.write(`${text}\n`);
    },
    end() {
      if (out.isTTY && last !== '') out.write(CLEAR);
      last = '';
    },
  };
}
