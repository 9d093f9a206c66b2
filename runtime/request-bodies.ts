import type { IncomingMessage } from 'node:http';
import { BodyError } from './body-error.ts';
import { type Lent, lentFree } from './buffer-pool.ts';

export { BodyError };

export interface BodyLimits {
  /** Bytes of one body. */
  readonly largest: number;
  /** Bytes of all bodies in the process that are arriving or in use. Default 24 MiB. */
  readonly total?: number;
  /**
   * Seconds for one body to arrive. Default 5: callers are the API server and the scheduler, on a short network path.
   */
  readonly seconds?: number;
}

/** Stores the bytes of one body. */
export interface BodySink {
  write(chunk: Buffer): void;
  /** All bytes; the caller returns them with `release`. */
  finish(): Lent;
  /** Discards the body. */
  drop(): void;
}

/**
 * Reads the bodies of a server's requests within limits for the whole process: sizes, a deadline, and the bytes in
 * flight. Callers may be hostile. When the bytes in flight run out, it gives up the oldest large body that is still
 * arriving; a caller that sends at once is never affected. It also limits the bytes in use at a time, because a decoded
 * body takes many times its size; other bodies wait for their turn.
 */
export interface RequestBodies {
  /**
   * Resolves when the body has arrived and its turn has come.
   *
   * @throws BodyError
   */
  read(request: IncomingMessage, sink?: BodySink): Promise<Lent>;
  /** Bytes in flight. */
  readonly bytes: number;
  /** Bodies given up because the bytes in flight ran out. */
  readonly evicted: number;
}

const TOTAL = 24 * 1024 * 1024;
const SECONDS = 5;
/** Bytes of a body that is always accepted: nearly all reviews and calls fit. The cap on connections bounds the sum. */
const SMALL = 64 * 1024;
/** Bytes of bodies in use at a time; a larger body is used alone. */
const WORKED_ON = 2 * 1024 * 1024;

interface Coming {
  size: number;
  readonly giveUp: () => void;
}

/**
 * Creates the reader for one server.
 *
 * @param limits bytes of one body and of all, seconds for one body
 */
export function createRequestBodies({ largest, total = TOTAL, seconds = SECONDS }: BodyLimits): RequestBodies {
  /** Bodies that are arriving, oldest first. */
  const coming = new Set<Coming>();
  let bytes = 0;
  let evicted = 0;
  const turns = createTurns(WORKED_ON);

  /** Makes room for a body that has grown. @returns whether it may stay */
  const makeRoom = (grown: Coming): boolean => {
    if (bytes <= total || grown.size <= SMALL) return true;
    for (const one of coming) {
      if (one === grown) break;
      if (one.size <= SMALL) continue;
      evicted++;
      one.giveUp();
      if (bytes <= total) return true;
    }
    return bytes <= total;
  };

  const receive = (request: IncomingMessage, sink: BodySink): Promise<{ lent: Lent; size: number }> =>
    new Promise((resolve, reject) => {
      const settle = (act: () => void) => {
        request.off('data', onData).off('end', onEnd).off('error', onError);
        clearTimeout(late);
        coming.delete(body);
        act();
      };
      const fail = (error: BodyError) =>
        settle(() => {
          bytes -= body.size;
          sink.drop();
          // A caller that is still sending would not read the answer; the rest of its body is dropped.
          request.resume();
          reject(error);
        });
      const body: Coming = {
        size: 0,
        giveUp: () => fail(new BodyError(503, `more than ${total} bytes of requests are in flight; try again`)),
      };
      const onData = (chunk: Buffer) => {
        if (body.size + chunk.length > largest) {
          fail(new BodyError(413, `the body is larger than ${largest} bytes`));
          return;
        }
        body.size += chunk.length;
        bytes += chunk.length;
        if (!makeRoom(body)) {
          evicted++;
          body.giveUp();
          return;
        }
        sink.write(chunk);
      };
      const onEnd = () => settle(() => resolve({ lent: sink.finish(), size: body.size }));
      const onError = (cause: Error) =>
        fail(new BodyError(400, 'the body ended before its announced length', { cause }));
      const late = setTimeout(
        () => fail(new BodyError(408, `the body did not arrive within ${seconds} s`)),
        seconds * 1000,
      );
      late.unref();
      const announced = Number(request.headers['content-length'] ?? 0);
      coming.add(body);
      request.on('data', onData).on('end', onEnd).on('error', onError);
      if (announced > largest) fail(new BodyError(413, `the body is larger than ${largest} bytes`));
    });

  return {
    async read(request, sink = chunkSink()) {
      const { lent, size } = await receive(request, sink);
      const release = () => {
        bytes -= size;
        lent.release();
      };
      const endTurn = await turns.take(size);
      const end = () => {
        release();
        endTurn();
      };
      return { bytes: lent.bytes, release: end };
    },
    get bytes() {
      return bytes;
    },
    get evicted() {
      return evicted;
    },
  };
}

/** A queue of work by weight, first come first served: work that exceeds the free budget waits. */
function createTurns(capacity: number) {
  const waiting: { readonly weight: number; readonly begin: () => void }[] = [];
  let free = capacity;
  const next = () => {
    for (let first = waiting[0]; first !== undefined && first.weight <= free; first = waiting[0]) {
      waiting.shift();
      free -= first.weight;
      first.begin();
    }
  };
  return {
    /** @returns a function that ends the turn */
    async take(size: number): Promise<() => void> {
      const weight = Math.min(size, capacity);
      if (waiting.length > 0 || weight > free) {
        await new Promise<void>((begin) => waiting.push({ weight, begin }));
      } else free -= weight;
      return () => {
        free += weight;
        next();
      };
    },
  };
}

/** Keeps the chunks as they arrive: a body in one piece is not copied. */
export function chunkSink(): BodySink {
  let chunks: Buffer[] = [];
  return {
    write: (chunk) => void chunks.push(chunk),
    finish: () => lentFree(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)),
    drop: () => {
      chunks = [];
    },
  };
}
