import { cut } from '../../model/errors.ts';
import { physnetResource } from '../../model/names.ts';
import { type NetworkMap, NetworkMapError, parseNetworkMap } from '../../model/networks/network-map.ts';
import { readBounded } from '../files/bounded-file.ts';
import { parseBoundedYaml } from '../files/bounded-yaml.ts';

/** Bytes; a ConfigMap has at most a MiB, and a map a line for each network. */
const MAX_MAP_BYTES = 256 * 1024;
const MAX_REASON_CHARACTERS = 300;

/** Reads the operator's network map. @throws NetworkMapError naming the file and the fault */
export function readNetworkMap(file: string): NetworkMap {
  let text: string;
  try {
    text = readBounded(file, MAX_MAP_BYTES);
  } catch (cause) {
    throw new NetworkMapError(`cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
  return parseNetworkMapText(file, text);
}

/** @throws NetworkMapError naming the file and the fault */
function parseNetworkMapText(file: string, text: string): NetworkMap {
  const map = named(file, () => parseNetworkMap(parseYaml(text)));
  for (const physnet of map.flatMap(({ physnets = {} }) => Object.keys(physnets))) {
    named(file, () => physnetResource(physnet));
  }
  return map;
}

/** Whether the map has different entries for different nodes. */
export function hasNodeSelectors(map: NetworkMap): boolean {
  return map.some(({ nodeSelector = {} }) => Object.keys(nodeSelector).length > 0);
}

function parseYaml(text: string): unknown {
  try {
    return parseBoundedYaml(text);
  } catch (cause) {
    throw new NetworkMapError(`not YAML: ${(cause as Error).message}`, {
      cause,
    });
  }
}

function named<Value>(file: string, read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    throw new NetworkMapError(`${file}: ${cut((cause as Error).message, MAX_REASON_CHARACTERS)}`, { cause });
  }
}
