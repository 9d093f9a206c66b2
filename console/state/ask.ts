import { useEffect, useState } from 'preact/hooks';

export type ServerAnswer<T> = { readonly data: T } | { readonly failed: string } | undefined;

export const dataOf = <T>(answer: ServerAnswer<T>): T | undefined =>
  answer !== undefined && 'data' in answer ? answer.data : undefined;

const MAX_TRIES = 5;

async function askServer<T>(url: string, signal: AbortSignal): Promise<ServerAnswer<T>> {
  try {
    for (let tries = 1; ; tries++) {
      const response = await fetch(url, { signal });
      if (response.ok) return { data: (await response.json()) as T };
      if (response.status !== 503 || tries === MAX_TRIES) return { failed: await response.text() };
      await new Promise((resolve) => setTimeout(resolve, 1000));
    }
  } catch (error) {
    return { failed: `Cannot reach the console: ${error instanceof Error ? error.message : String(error)}` };
  }
}

const REFRESH_MILLISECONDS = 30_000;

/** Refreshed while the page is visible and when `cause` changes. @param url undefined: the last response stays */
export function useAnswer<T>(
  url: string | undefined,
  cause?: string,
  refreshMilliseconds = REFRESH_MILLISECONDS,
): ServerAnswer<T> {
  const [answer, setAnswer] = useState<ServerAnswer<T>>(undefined);
  useEffect(() => {
    if (url === undefined) return undefined;
    const left = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      if (!document.hidden) {
        const data = await askServer<T>(url, left.signal);
        if (left.signal.aborted) return;
        setAnswer(data);
      }
      timer = setTimeout(() => void ask(), refreshMilliseconds);
    };
    void ask();
    return () => {
      left.abort();
      clearTimeout(timer);
    };
  }, [url, refreshMilliseconds, cause]);
  return answer;
}
