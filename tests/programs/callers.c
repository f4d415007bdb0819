/* Opens COUNT connections to the admin socket at PATH, asks each for the node's status, and keeps all open until it has
 * asked the last. Prints how many answered with a document, and how many with a refusal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const char question[] = "{\"request\":\"status\"}\n";
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    int answered = 0, refused = 0;
    if (argc != 3 || strlen(argv[1]) >= sizeof address.sun_path) return 64;
    strcpy(address.sun_path, argv[1]);
    for (int count = atoi(argv[2]); count > 0; count--) {
        char answer[16] = "";
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address)) { perror("connect"); return 1; }
        /* whoever is refused may be hung up on before this arrives */
        if (send(fd, question, sizeof question - 1, MSG_NOSIGNAL) < 0) perror("send");
        if (recv(fd, answer, sizeof answer - 1, MSG_WAITALL) <= 0) { perror("recv"); return 1; }
        answered += !strncmp(answer, "{\"ok\"", 5);
        refused += !strncmp(answer, "{\"error\"", 8);
    }
    printf("answered=%d\nrefused=%d\n", answered, refused);
    return 0;
}
