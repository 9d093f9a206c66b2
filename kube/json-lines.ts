/**
 * Decodes a stream of JSON objects, one a line, as the API server sends watch events. A line split over chunks is put
 * together again; a last line without its end is dropped, since the stream was cut there.
 */
export async function* jsonLines(stream: AsyncIterable<Uint8Array>): AsyncGenerator<unknown> {
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of stream) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) if (line !== '') yield JSON.parse(line);
  }
}
