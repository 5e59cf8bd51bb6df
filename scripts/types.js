/**
 * `npm run types`: the TypeScript types of what docs/openapi.yaml describes.
 *
 * Only those of bodies and answers, each under its own name: routes and their arguments are the
 * client's own business (`jobs/client.ts`), and nobody reads the types that openapi-typescript
 * would make of them.
 */
const fs = require('fs');
const path = require('path');
const { pathToFileURL } = require('url');
const ts = require('typescript');
const {
  default: openapiTS,
  astToString,
  COMMENT_HEADER
} = require('openapi-typescript');

const SOURCE = path.join(path.dirname(__dirname), 'docs', 'openapi.yaml');
const REFERENCE = /components\["schemas"\]\["(\w+)"\]/g;

/** The schema as a type of its own, with its comment. */
function toAlias(schema) {
  const alias = ts.factory.createTypeAliasDeclaration(
    [ts.factory.createModifier(ts.SyntaxKind.ExportKeyword)],
    schema.name,
    undefined,
    schema.type
  );
  const comments = ts.getSyntheticLeadingComments(schema);
  return ts.setSyntheticLeadingComments(alias, comments);
}

async function main(target) {
  const nodes = await openapiTS(pathToFileURL(SOURCE), {
    defaultNonNullable: false
  });
  const member = (members, name) =>
    members.find(each => each.name?.text === name);
  const schemas = member(member(nodes, 'components').members, 'schemas');
  const types = astToString(schemas.type.members.map(toAlias));
  fs.writeFileSync(target, COMMENT_HEADER + types.replace(REFERENCE, '$1'));
}

main(process.argv[2]).catch(error => {
  console.error(error);
  process.exitCode = 1;
});
