import * as z from 'zod';
import type { KubeClient, RequestOptions } from './client.ts';
import { KubeError } from './errors.ts';

/** Bytes of a page that is decoded in one go; a page of one object may have LARGEST. */
const PAGE_BYTES = 2 * 1024 * 1024;
const LARGEST = 16 * 1024 * 1024;
/** By how much a page is made smaller when it turned out too large, and after how many pages it may be larger again. */
const SHRINK = 4;
const GROW_AFTER = 4;

const listPage = z.object({
  metadata: z.object({ resourceVersion: z.string(), continue: z.string().optional() }),
  items: z.array(z.unknown()).nullish(),
});

export type ListPage = z.infer<typeof listPage>;

export interface PagesOptions {
  readonly client: Pick<KubeClient, 'get'>;
  readonly path: string;
  readonly query?: RequestOptions['query'];
  /** Objects of a page, at most. */
  readonly page: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * The pages of a list. The API server bounds a page by its number of objects only, and a tenant chooses how large those
 * are: a page that turns out larger than PAGE_BYTES is dropped and asked for again with fewer.
 * @throws KubeError
 */
export async function* pagesOf({ client, path, query, page, signal }: PagesOptions): AsyncGenerator<ListPage> {
  let limit = page;
  /** Objects of a page that was not too large of late. */
  let most = page;
  let pages = 0;
  let token: string | undefined;
  for (;;) {
    try {
      const request = { query: { ...query, limit, continue: token }, signal, timeout: 60 };
      const found = listPage.parse(await client.get(path, { ...request, largest: limit === 1 ? LARGEST : PAGE_BYTES }));
      yield found;
      token = found.metadata.continue === '' ? undefined : found.metadata.continue;
      if (token === undefined) return;
      if (++pages % GROW_AFTER === 0) most = Math.min(page, most * 2);
      limit = Math.min(most, limit * 2);
    } catch (error) {
      if (limit === 1 || !(error instanceof KubeError) || error.reason !== 'TooLarge') throw error;
      most = Math.ceil(limit / 2);
      limit = Math.ceil(limit / SHRINK);
      pages = 0;
    }
  }
}
