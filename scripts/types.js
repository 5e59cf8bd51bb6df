/**
 * `npm run types`: the TypeScript types of what docs/openapi.yaml describes.
 *
 * Only those of bodies and answers: routes and their arguments are the client's own business
 * (`jobs/client.ts`), and nobody reads the types that openapi-typescript would make of them.
 */
const fs = require('fs');
const path = require('path');
const { pathToFileURL } = require('url');
const {
  default: openapiTS,
  astToString,
  COMMENT_HEADER
} = require('openapi-typescript');

const SOURCE = path.join(path.dirname(__dirname), 'docs', 'openapi.yaml');
const UNREAD = ['paths', 'webhooks', '$defs', 'operations'];
const OPTIONS = {
  rootTypes: true,
  rootTypesNoSchemaPrefix: true,
  defaultNonNullable: false
};

async function main(target) {
  const nodes = await openapiTS(pathToFileURL(SOURCE), OPTIONS);
  const read = nodes.filter(({ name }) => !UNREAD.includes(name?.text));
  fs.writeFileSync(target, COMMENT_HEADER + astToString(read));
}

main(process.argv[2]).catch(error => {
  console.error(error);
  process.exitCode = 1;
});
