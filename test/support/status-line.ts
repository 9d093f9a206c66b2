/** Shows the progress of a long run: one line that is overwritten on a terminal, a line at intervals elsewhere. */
export interface StatusLine {
  /** Prints a separate line. */
  line(text: string): void;
  /** Replaces the last status. */
  status(text: string): void;
  /** Removes the status. */
  end(): void;
}

/** The used part of a stream: standard output. */
export interface Terminal {
  readonly isTTY?: boolean;
  readonly columns?: number;
  write(text: string): unknown;
}

const CLEAR = '\r\u001b[K';

/** @param every outside of a terminal, one of this many statuses is printed */
export function createStatusLine(out: Terminal, every = 20): StatusLine {
  let last = '';
  let count = 0;
  const show = () => out.write(CLEAR + last.slice(0, (out.columns ?? 80) - 1));
  return {
    line(text) {
      out.write(out.isTTY ? `${CLEAR}${text}\n` : `${text}\n`);
      if (out.isTTY && last !== '') show();
    },
    status(text) {
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
