import * as z from 'zod';
import { type KubeClient, KubeError, type RequestOptions } from './client.ts';

/** Bytes of a page that is decoded at once. A page of one object may have LARGEST bytes. */
const PAGE_BYTES = 2 * 1024 * 1024;
const MAX_PAGE_BYTES = 16 * 1024 * 1024;
/** How much a page that is too large shrinks, and after how many pages it grows again (doubled each time). */
const SHRINK_FACTOR = 4;
const GROW_AFTER_PAGES = 4;

const listPage = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().optional() }),
  items: z.array(z.unknown()).nullish(),
});

export type ListPage = z.infer<typeof listPage>;

interface PagesOptions {
  readonly client: Pick<KubeClient, 'get'>;
  readonly path: string;
  readonly query?: RequestOptions['query'];
  readonly page: number;
  readonly signal?: AbortSignal | undefined;
  readonly timeout?: number;
}

/** Tenants choose the size of objects: a page above PAGE_BYTES is requested again with fewer. @throws KubeError */
export async function* pagesOf({ client, path, query, page, signal, timeout }: PagesOptions): AsyncGenerator<ListPage> {
  const request = { signal, ...(timeout !== undefined && { timeout }) };
  let limit = page;
  /** Upper limit of the page size, lowered when a page is too large. */
  let most = page;
  let pages = 0;
  let growAfter = GROW_AFTER_PAGES;
  let token: string | undefined;
  for (;;) {
    try {
      const largest = limit === 1 ? MAX_PAGE_BYTES : PAGE_BYTES;
      const answer = await client.get(path, { ...request, query: { ...query, limit, continue: token }, largest });
      const list = listPage.parse(answer);
      yield list;
      token = list.metadata.continue === '' ? undefined : list.metadata.continue;
      if (token === undefined) return;
      if (++pages % growAfter === 0) most = Math.min(page, most * 2);
      limit = most;
    } catch (error) {
      if (limit === 1 || !(error instanceof KubeError) || error.reason !== 'TooLarge') throw error;
      most = Math.ceil(limit / 2);
      limit = Math.ceil(limit / SHRINK_FACTOR);
      if (pages > 0) growAfter *= 2;
      pages = 0;
    }
  }
}
