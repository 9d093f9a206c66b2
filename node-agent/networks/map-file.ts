import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { physnetResource } from '../../model/names.ts';
import { type NetworkMap, NetworkMapError, parseNetworkMap } from '../../model/networks/network-map.ts';

/**
 * Reads the operator's network map.
 * @throws NetworkMapError naming the file and what in it is wrong
 */
export function readNetworkMap(file: string): NetworkMap {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    throw new NetworkMapError(`${file} cannot be read: ${(cause as Error).message}`, { cause });
  }
  return parseNetworkMapText(file, text);
}

/** @throws NetworkMapError naming the file and what in it is wrong */
export function parseNetworkMapText(file: string, text: string): NetworkMap {
  const map = named(file, () => parseNetworkMap(parseYaml(text)));
  for (const physnet of map.flatMap(({ physnets = {} }) => Object.keys(physnets))) {
    named(file, () => physnetResource(physnet));
  }
  return map;
}

/** Whether the map says different things for different nodes. */
export function hasNodeSelectors(map: NetworkMap): boolean {
  return map.some(({ nodeSelector = {} }) => Object.keys(nodeSelector).length > 0);
}

function parseYaml(text: string): unknown {
  try {
    return parse(text);
  } catch (cause) {
    throw new NetworkMapError(`not YAML: ${(cause as Error).message.split('\n')[0]}`, { cause });
  }
}

function named<Value>(file: string, read: () => Value): Value {
  try {
    return read();
  } catch (cause) {
    throw new NetworkMapError(`${file}: ${(cause as Error).message}`, { cause });
  }
}
