import { isUtf8 } from 'node:buffer';
import express, { type Request, type RequestHandler, type Response } from 'express';
import { ParseError } from '../model/errors.ts';
import { assertBoundedJson, BodyError, UNCHECKED_BYTES } from './json-bounds.ts';

interface JsonBodiesOptions {
  readonly maxBodyBytes: number;
  /** Bytes of all bodies until their answer, half of them for one client address. Default 16 MiB. */
  readonly maxBytesInFlight?: number;
  /** Seconds for one body to arrive. Default 5: callers are on a short network path. */
  readonly deadlineSeconds?: number;
}

/** Bytes of a body that is always accepted, as nearly all fit. The cap on connections bounds their sum. */
const SMALL_BODY_BYTES = UNCHECKED_BYTES;
const MAX_BYTES_IN_FLIGHT = 16 * 1024 * 1024;
const DEADLINE_SECONDS = 5;

interface Body {
  readonly client: string;
  readonly bytes: number;
  /** Ends a body that is still arriving; undefined once it has arrived. */
  giveUp: (() => void) | undefined;
}

/**
 * Reads JSON bodies within limits for the whole server. If the bytes in flight run out, the client with the most of
 * them loses its oldest body that is still arriving.
 */
export class JsonBodies {
  readonly #options: Required<JsonBodiesOptions>;
  readonly #parse: RequestHandler;
  readonly #bodies = new Set<Body>();
  #evicted = 0;

  constructor(options: JsonBodiesOptions) {
    this.#options = { maxBytesInFlight: MAX_BYTES_IN_FLIGHT, deadlineSeconds: DEADLINE_SECONDS, ...options };
    this.#parse = express.json({
      limit: options.maxBodyBytes,
      inflate: false,
      strict: false,
      type: () => true,
      verify: (_request, _response, bytes) => assertReadable(bytes),
    });
  }

  get bytes(): number {
    return sumOfBytes(this.#bodies);
  }

  get evicted(): number {
    return this.#evicted;
  }

  /**
   * A route's handler that is called with the parsed `request.body`. The body counts as in flight until the handler's
   * promise settles. A refused body is passed to the route's error handler as a BodyError.
   */
  handler(handle: (request: Request, response: Response) => Promise<void>): RequestHandler {
    return async (request, response) => {
      const body = this.#admit(request);
      try {
        await this.#arrival(body, request, response);
        await handle(request, response);
      } finally {
        this.#bodies.delete(body);
      }
    };
  }

  /** Counts the announced bytes before any is read. @throws BodyError */
  #admit({ headers, socket }: Request): Body {
    const { maxBodyBytes } = this.#options;
    if (headers['transfer-encoding'] !== undefined) {
      throw new BodyError(411, 'the request has no Content-Length, and chunked bodies are not accepted');
    }
    const bytes = Number(headers['content-length'] ?? 0);
    if (bytes > maxBodyBytes) throw new BodyError(413, `the body is larger than ${maxBodyBytes} bytes`);
    const client = socket.remoteAddress ?? '';
    if (bytes > SMALL_BODY_BYTES && !this.#makeRoom(client, bytes)) {
      this.#evicted++;
      throw this.#noRoom();
    }
    const body: Body = { client, bytes, giveUp: undefined };
    this.#bodies.add(body);
    return body;
  }

  #arrival(body: Body, request: Request, response: Response): Promise<void> {
    return new Promise((resolve, reject) => {
      const abandon = (error: BodyError): void => {
        this.#bodies.delete(body);
        settle(error);
        // The parser keeps what has arrived until the request ends. The answer is written before.
        setImmediate(() => request.destroy());
      };
      body.giveUp = () => {
        this.#evicted++;
        abandon(this.#noRoom());
      };
      const { deadlineSeconds } = this.#options;
      const expire = () => abandon(new BodyError(408, `the body did not arrive within ${deadlineSeconds} s`));
      const late = setTimeout(expire, deadlineSeconds * 1000).unref();
      function settle(error?: BodyError): void {
        clearTimeout(late);
        body.giveUp = undefined;
        if (error === undefined) resolve();
        else reject(error);
      }
      this.#parse(request, response, (error?: unknown) => settle(error ? bodyError(error) : undefined));
    });
  }

  /** Gives up stalled bodies until these bytes fit. @returns whether they fit */
  #makeRoom(client: string, bytes: number): boolean {
    const { maxBytesInFlight } = this.#options;
    for (;;) {
      const clientBytes = sumOfBytes(this.#of(client)) + bytes;
      const isOverShare = clientBytes > maxBytesInFlight / 2;
      if (!isOverShare && this.bytes + bytes <= maxBytesInFlight) return true;
      const loser = isOverShare ? client : this.#heaviest(client, clientBytes);
      const stalled = this.#of(loser).find((body) => body.giveUp !== undefined && body.bytes > SMALL_BODY_BYTES);
      if (stalled?.giveUp === undefined) return false;
      stalled.giveUp();
    }
  }

  #heaviest(client: string, clientBytes: number): string {
    const sums = new Map([[client, clientBytes]]);
    for (const body of this.#bodies) {
      if (body.client !== client) sums.set(body.client, (sums.get(body.client) ?? 0) + body.bytes);
    }
    return [...sums].reduce((most, sum) => (sum[1] > most[1] ? sum : most))[0];
  }

  #of(client: string): Body[] {
    return [...this.#bodies].filter((body) => body.client === client);
  }

  #noRoom(): BodyError {
    return new BodyError(503, `more than ${this.#options.maxBytesInFlight} bytes of requests are in flight; try again`);
  }
}

function sumOfBytes(bodies: Iterable<Body>): number {
  return [...bodies].reduce((sum, { bytes }) => sum + bytes, 0);
}

/** @throws BodyError */
function assertReadable(bytes: Buffer): void {
  if (bytes.length === 0) throw new BodyError(400, 'the body is empty: expected JSON');
  if (!isUtf8(bytes)) throw new BodyError(400, 'the body is not JSON: it is not UTF-8');
  assertBoundedJson(bytes);
}

function bodyError(error: unknown): BodyError {
  if (error instanceof BodyError) return error;
  const { type, message, body } = error as { type?: string; message?: string; body?: unknown };
  switch (type) {
    case 'entity.parse.failed':
      return new BodyError(400, new ParseError('the body', String(body).slice(0, 60), 'it is not JSON').message);
    case 'request.aborted':
    case 'request.size.invalid':
      return new BodyError(400, 'the body ended before its announced length');
    case 'encoding.unsupported':
      return new BodyError(415, 'the body is compressed: send it without Content-Encoding');
    case 'charset.unsupported':
      return new BodyError(415, 'the body has another character set: send UTF-8');
    default:
      return new BodyError(400, `the body could not be read: ${message ?? 'unknown error'}`);
  }
}
