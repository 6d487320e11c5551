/* A program whose library is a client: the C library comes before vgasnet in the search order. */
int client_main(int argc, char **argv);

int main(int argc, char **argv) { return client_main(argc, argv); }
